"""The objects behind the pytest fixtures: a cluster, a nemesis and a history in one run folder.

The test drives them, in place of a scenario's schedule; evidence, verdict and report are those of
`urteil run`.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from urteil.chaos.manual_faults import ManualFaults
from urteil.chaos.observations import LabFailure
from urteil.harness.clients.client_main import boot_id
from urteil.harness.clients.leadership_rotation import leadership_rounds
from urteil.harness.clients.workload import Workload
from urteil.harness.cluster import Cluster
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.evidence.collection import collect
from urteil.harness.run.folder import new_run_dir
from urteil.harness.run.topics import create_topics
from urteil.harness.scenario import (
    ClusterSpec,
    Phase,
    RunFacts,
    Scenario,
    TopicFact,
    TopicSpec,
    WorkloadSpec,
    save,
)
from urteil.harness.standing import StandingCluster, StandingError, StandingRequest, attach, start
from urteil.harness.targets import parse_target
from urteil.harness.targets.mix import size_of
from urteil.harness.verify import judge
from urteil.harness.verify.result import Result
from urteil.lab_options import Options, PluginError, check_config, properties
from urteil.report_drawing import draw

TRAFFIC_DEADLINE_S = 30.0
FINAL_READ_DEADLINE_S = 60.0
ZOOKEEPER_DEADLINE_S = 15.0
LOG_LINES = 10
"""Lines of each broker's log in the report of a failed test."""


class ClusterHandle:
    """A running cluster: the test's own, a shared one, or a standing one.

    `bootstrap` is the clients' bootstrap address; `own` is None for a standing cluster.
    """

    def __init__(self, bootstrap: list[str], state: ClusterState, own: Cluster | None) -> None:
        self.bootstrap_servers = bootstrap
        self.bootstrap = ",".join(bootstrap)
        self.own = own
        self._state = state

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 3,
        replication_factor: int = 3,
        config: Mapping[str, str] | None = None,
    ) -> TopicFact:
        """Create a topic and wait until all partitions have a leader. Raises KafkaError."""
        spec = TopicSpec(
            name=name,
            partitions=partitions,
            replication_factor=replication_factor,
            config=dict(config or {}),
        )
        create_topics(self.bootstrap_servers, Scenario(name="topic", workload=_only(spec)))
        return self.topic(name, config)

    def topic(self, name: str, config: Mapping[str, str] | None = None) -> TopicFact:
        """The topic as in ZooKeeper. Raises PluginError if it does not exist."""
        partitions = self._state.partitions(name)
        if not partitions:
            raise PluginError(f"no topic {name!r}: urteil_cluster.create_topic makes one")
        return TopicFact(
            name=name,
            topic_id=self._state.topic_id(name) or "",
            partitions=len(partitions),
            replication_factor=len(partitions[0].replicas),
            config=dict(config or {}),
        )


def _only(topic: TopicSpec) -> WorkloadSpec:
    return WorkloadSpec(topics=(topic,))


class Lab:
    """One test's run folder and everything that was started for it, until `close`.

    With `shared`, the lab of a module or a session, the test uses its cluster.
    """

    def __init__(self, test: str, options: Options, shared: Lab | None = None) -> None:
        self.options = options
        self.shared = shared
        self.name = name = re.sub(r"[^A-Za-z0-9_.]+", "-", test).strip("-")
        try:
            brokers = options.brokers or size_of(options.target, 3)
            check_config(options, brokers)
        except (MissingDependency, ValueError) as error:
            raise PluginError(f"--urteil-target {options.target}: {error}") from None
        spec = ClusterSpec(
            brokers=brokers, zookeepers=options.zookeepers, config=properties(options.config)
        )
        keeper = options.standing or (shared.name if shared else None)
        target = f"standing:{keeper}" if keeper else options.target
        self.scenario = Scenario(
            name=name, cluster=spec, seed=options.seed, target=target, runtime=options.runtime
        )
        self.run_dir = new_run_dir(Path(options.out), self.scenario)
        self.facts = RunFacts(
            run=secrets.token_hex(4),
            seed=options.seed,
            scenario=name,
            target=target,
            runtime=options.runtime,
            boot_id=boot_id(),
            command=f"pytest -k {name} --urteil-seed {options.seed}",
        )
        self.has_failed = False
        self._own: Cluster | None = None
        self._state: ClusterState | None = None
        self._handle: ClusterHandle | None = None
        self._nemesis: ManualFaults | None = None
        self._history: History | None = None

    def cluster(self) -> ClusterHandle:
        """The cluster with the topics of the options; the first call starts it."""
        if self._handle is None:
            if self.options.standing:
                self._handle = self._attach(attach(self.options.standing))
            else:
                self._handle = self.shared.cluster() if self.shared else self._start()
            for topic in self.options.topic_specs(self.scenario.cluster.brokers):
                self._handle.create_topic(
                    topic.name,
                    partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    config=topic.config,
                )
        return self._handle

    def _start(self) -> ClusterHandle:
        """Start the test's own cluster. Raises PluginError for a missing part or a wrong target."""
        options = self.options
        try:
            target = parse_target(options.target)
            self._own = Cluster(
                self.scenario.cluster, target, self.run_dir, runtime=options.runtime
            )
            self._own.start()
        except (MissingDependency, ValueError) as error:
            raise PluginError(
                f"--urteil-target {options.target} --urteil-runtime {options.runtime}: {error}"
            ) from None
        self.facts.versions = self._own.versions()
        self.facts.brokers = sorted(self._own.data_dirs())
        return ClusterHandle(self._own.bootstrap, self._own.state, self._own)

    def _attach(self, standing: StandingCluster) -> ClusterHandle:
        self._state = ClusterState(standing.zookeeper)
        self._state.start(deadline_s=ZOOKEEPER_DEADLINE_S)
        return ClusterHandle(standing.lab_bootstrap, self._state, None)

    def mark_failed(self) -> None:
        """Record that a test of this lab failed."""
        self.has_failed = True
        if self.shared:
            self.shared.mark_failed()

    def failure(self) -> str:
        """Text for the report of a failed test: run folder, command, last lines of the logs."""
        home = self.shared or self
        lines = [f"run      {self.run_dir}"]
        if (self.run_dir / "report.html").exists():
            lines.append(f"report   {self.run_dir / 'report.html'}")
        lines.append(f"again    {self.facts.command}")
        if self.options.keep and not self.options.standing:
            lines.append(f"cluster  urteil cluster status --name {home.kept_name}")
        for log in sorted((home.run_dir / "logs").glob("b*.log")):
            last = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            lines += [f"--- {log.name}", *last]
        return "\n".join(lines)

    @property
    def kept_name(self) -> str:
        """The name of the cluster that `--urteil-keep` leaves standing."""
        return self.run_dir.name[-60:].lstrip("_.-")

    def keep(self) -> None:
        """Restart the test's own cluster on its data as a standing cluster.

        Raises PluginError if it does not start.
        """
        if self._own is None or self._handle is None:
            return
        cluster, options = self.scenario.cluster, self.options
        self.end_cluster()
        request = StandingRequest(
            name=self.kept_name,
            brokers=cluster.brokers,
            zookeepers=cluster.zookeepers,
            target=options.target,
            runtime=options.runtime,
            settings=cluster.config,
        )
        try:
            start(request, self.run_dir)
        except (StandingError, MissingDependency) as error:
            raise PluginError(f"--urteil-keep: {error}") from None

    def nemesis(self) -> ManualFaults:
        """The nemesis of the test's own cluster. Raises PluginError for a standing one."""
        own = self.cluster().own
        if own is None:
            raise PluginError(
                "a standing cluster belongs to its keeper: faults need a cluster of the test's "
                "own; leave --urteil-cluster out, or do not use urteil_nemesis in this test"
            )
        if self._nemesis is None:
            record = self.run_dir / "faults.jsonl"
            self._nemesis = ManualFaults(own.controls(), record, seed=self.options.seed)
        return self._nemesis

    def history(self) -> History:
        if self._history is None:
            self._history = History(self)
        return self._history

    def end_cluster(self) -> None:
        """Stop the test's own cluster cleanly, since its logs on disk are evidence.

        A failure becomes a problem of the run.
        """
        try:
            if self._own is not None:
                self._own.stop()
        except LabFailure as failure:
            self.facts.problems.append(str(failure))

    def fault_times(self) -> list[tuple[int, int]]:
        """(begin, healed) of every fault so far, CLOCK_MONOTONIC in ns."""
        injections = [] if self._nemesis is None else self._nemesis.injections
        return [(one.begin_ns, one.healed_ns or time.monotonic_ns()) for one in injections]

    def close(self) -> None:
        """End the clients, then all other parts, despite errors."""
        with ExitStack() as ends:
            for part in (self._state, self._own, self._history):
                if part is not None:
                    ends.callback(part.close)


class History:
    """The lab's own clients during a test, and the verdict on their records."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._workload: Workload | None = None
        self._topic: TopicFact | None = None

    @contextmanager
    def load(
        self,
        topic: str,
        *,
        rate: float = 200.0,
        producers: int = 2,
        consumers: int = 1,
        acks: int = -1,
        idempotent: bool = True,
    ) -> Iterator[Workload]:
        """Send `rate` records/s to `topic` for the length of a `with` block, then read all back.

        The block begins after the acknowledgements that a verdict requires before a fault, and
        the same number is awaited after it. Raises PluginError when they do not arrive within
        30 s, when the topic does not exist, and at a second call in one test.
        """
        if self._workload is not None:
            raise PluginError("use urteil_history.load once in a test: one history, one verdict")
        cluster = self._lab.cluster()
        self._topic = fact = cluster.topic(topic)
        spec = TopicSpec(
            name=fact.name,
            partitions=fact.partitions,
            replication_factor=fact.replication_factor,
        )
        load = WorkloadSpec(
            topics=(spec,), producers=producers, consumers=consumers, rate_records_per_s=rate,
            acks=acks, idempotent=idempotent,
        )  # fmt: skip
        self._save_scenario(load)
        lab = self._lab
        workload = self._workload = Workload(
            lab.scenario, lab.run_dir, cluster.bootstrap_servers, [fact], lab.facts.run
        )
        began_ns = time.monotonic_ns()
        workload.start()
        self._await_traffic(workload)
        yield workload
        self._await_traffic(workload)
        self._phases(began_ns)
        workload.stop_producers()
        self._read_finally(cluster, workload, fact)

    def judge(self) -> Result:
        """End the test's own cluster, judge the load and write the report.

        Raises PluginError when `load` was not used.
        """
        if self._workload is None or self._topic is None:
            raise PluginError("nothing to judge: use `with urteil_history.load(topic):` first")
        lab = self._lab
        self._workload.stop()
        lab.facts.problems += self._workload.problems()
        lab.end_cluster()
        save(lab.run_dir / "run.json", lab.facts)
        lab.facts.problems += collect(lab.run_dir).problems
        save(lab.run_dir / "run.json", lab.facts)
        result = judge(lab.run_dir, engine=lab.options.engine)
        draw(lab.run_dir)
        return result

    def close(self) -> None:
        if self._workload is not None:
            self._workload.stop()

    def _save_scenario(self, load: WorkloadSpec) -> None:
        lab = self._lab
        base = lab.scenario
        lab.scenario = Scenario(
            name=base.name,
            about="a test that drives the lab by hand",
            cluster=base.cluster,
            workload=load,
            guarantees=("lost_write",),
            permits=("foreign_records",),
            seed=base.seed,
            target=base.target,
            runtime=base.runtime,
        )
        save(lab.run_dir / "scenario.json", lab.scenario)
        assert self._topic is not None
        lab.facts.topics = [self._topic]

    def _await_traffic(self, workload: Workload) -> None:
        """Wait until the minimum that a verdict requires was acknowledged from now on.

        The load of a fifth of a second is added, since a verdict counts in tenths of a second.
        """
        scenario = self._lab.scenario
        before = workload.acked()
        required = scenario.minimum_acks + int(scenario.workload.rate_records_per_s / 5)
        if not workload.await_acked(before + required, deadline_s=TRAFFIC_DEADLINE_S):
            raise PluginError(
                f"{workload.acked() - before} records were acknowledged within "
                f"{TRAFFIC_DEADLINE_S:g} s, a verdict requires {required}: raise `rate`, or see "
                f"the logs in {self._lab.run_dir}"
            )

    def _read_finally(self, cluster: ClusterHandle, workload: Workload, fact: TopicFact) -> None:
        began_ns = time.monotonic_ns()
        rounds = None
        if cluster.own is not None:
            rounds = leadership_rounds(
                cluster.own.controls(),
                cluster.bootstrap_servers,
                [fact.name],
                deadline_s=FINAL_READ_DEADLINE_S,
            )
        reads = workload.final_reads(FINAL_READ_DEADLINE_S, rounds)
        workload.stop_consumers()
        self._lab.facts.problems += reads.problems
        self._phase("final", began_ns, time.monotonic_ns())

    def _phases(self, began_ns: int) -> None:
        ended_ns = time.monotonic_ns()
        times = self._lab.fault_times()
        first_ns = min((begin for begin, _ in times), default=ended_ns)
        last_ns = max((healed for _, healed in times), default=ended_ns)
        self._phase("before", began_ns, first_ns)
        if times:
            self._phase("during", first_ns, last_ns)
            self._phase("after", last_ns, ended_ns)

    def _phase(self, name: str, begin_ns: int, end_ns: int) -> None:
        self._lab.facts.phases.append(Phase(name=name, begin_ns=begin_ns, end_ns=end_ns))
