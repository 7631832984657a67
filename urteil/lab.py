"""The objects behind the pytest fixtures: a cluster, a nemesis and a history in one run folder.

The test drives them, in place of a scenario's schedule; evidence, verdict and report are those of
`urteil run`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from urteil.chaos.manual_faults import ManualFaults
from urteil.chaos.nemesis import Injection
from urteil.chaos.observations import LabFailure
from urteil.harness.clients.workload import Workload
from urteil.harness.cluster import Cluster
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.run.folder import new_run_dir
from urteil.harness.run.judging import judge_collected
from urteil.harness.run.steps import Steps, new_facts
from urteil.harness.run.topics import create_topics
from urteil.harness.runtimes.hosts.connection import HostFailure
from urteil.harness.scenario import (
    ClusterSpec,
    Scenario,
    TopicFact,
    TopicSpec,
    WorkloadSpec,
    save,
)
from urteil.harness.standing import StandingCluster, StandingError, StandingRequest, attach, start
from urteil.harness.standing.cluster_state import state_of
from urteil.harness.targets import parse_target
from urteil.harness.targets.mix import size_of
from urteil.harness.verify.result import Result
from urteil.lab_options import Options, PluginError, check_config, properties
from urteil.report_drawing import draw

TRAFFIC_DEADLINE_S = 30.0
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
        create_topics(self.bootstrap_servers, [spec])
        return self.topic(name, config)

    def topic(self, name: str, config: Mapping[str, str] | None = None) -> TopicFact:
        """The topic as in the metadata. Raises PluginError if it does not exist."""
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
            brokers=brokers,
            zookeepers=options.zookeepers,
            controllers=options.controllers,
            quorum=options.quorum,
            config=properties(options.config),
        )
        owner = options.standing or (shared.name if shared else None)
        target = f"standing:{owner}" if owner else options.target
        scenario = Scenario(
            name=name,
            cluster=spec,
            seed=options.seed,
            target=target,
            runtime=options.runtime,
            hosts=options.hosts,
        )
        self.run_dir = new_run_dir(Path(options.out), scenario)
        command = f"pytest -k {name} --urteil-seed {options.seed}"
        self.steps = Steps(scenario, self.run_dir, new_facts(scenario, command))
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
            for topic in self.options.topic_specs(self.steps.scenario.cluster.brokers):
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
            spec = self.steps.scenario.cluster
            if options.runtime == "ssh" and not options.hosts:
                raise ValueError("add --urteil-hosts hosts.toml, the inventory of the hosts")
            self._own = Cluster(
                spec, target, self.run_dir, runtime=options.runtime, hosts=options.hosts
            )
            self.steps.start_cluster(self._own)
        except (MissingDependency, ValueError, HostFailure) as error:
            raise PluginError(
                f"--urteil-target {options.target} --urteil-runtime {options.runtime}: {error}"
            ) from None
        return ClusterHandle(self._own.bootstrap, self._own.state, self._own)

    def _attach(self, cluster: StandingCluster) -> ClusterHandle:
        self._state = state_of(cluster)
        self._state.start(deadline_s=ZOOKEEPER_DEADLINE_S)
        return ClusterHandle(cluster.lab_bootstrap, self._state, None)

    def mark_failed(self) -> None:
        """Record that a test of this lab failed."""
        self.has_failed = True
        if self.shared:
            self.shared.mark_failed()

    def failure(self) -> str:
        """Text for the report of a failed test: run folder, command, last lines of the logs."""
        owner = self.shared or self
        lines = [f"run      {self.run_dir}"]
        if (self.run_dir / "report.html").exists():
            lines.append(f"report   {self.run_dir / 'report.html'}")
        lines.append(f"again    {self.steps.facts.command}")
        if self.options.keep and not self.options.standing:
            lines.append(f"cluster  urteil cluster status --name {owner.standing_name}")
        for log in sorted((owner.run_dir / "logs").glob("b*.log")):
            last_lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            lines += [f"--- {log.name}", *last_lines]
        return "\n".join(lines)

    @property
    def standing_name(self) -> str:
        """The name of the cluster that `--urteil-keep` leaves standing."""
        return self.run_dir.name[-60:].lstrip("_.-")

    def keep(self) -> None:
        """Restart the test's own cluster on its data as a standing cluster.

        Raises PluginError if it does not start.
        """
        if self._own is None or self._handle is None:
            return
        cluster, options = self.steps.scenario.cluster, self.options
        self.end_cluster()
        request = StandingRequest(
            name=self.standing_name,
            brokers=cluster.brokers,
            zookeepers=cluster.zookeepers,
            controllers=cluster.controllers,
            quorum=cluster.quorum,
            target=options.target,
            runtime=options.runtime,
            hosts=options.hosts and str(Path(options.hosts).resolve()),
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
            file = self.run_dir / "faults.jsonl"
            self._nemesis = ManualFaults(own.controls(), file, seed=self.options.seed)
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
            self.steps.facts.problems.append(str(failure))

    @property
    def injections(self) -> list[Injection]:
        """The faults so far."""
        return [] if self._nemesis is None else self._nemesis.injections

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
        self._steps = lab.steps
        self._workload: Workload | None = None

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
        cluster, steps = self._lab.cluster(), self._steps
        fact = cluster.topic(topic)
        steps.facts.topics = [fact]
        spec = TopicSpec(
            name=fact.name,
            partitions=fact.partitions,
            replication_factor=fact.replication_factor,
        )
        load = WorkloadSpec(
            topics=(spec,), producers=producers, consumers=consumers, rate_records_per_s=rate,
            acks=acks, idempotent=idempotent,
        )  # fmt: skip
        self._set_load(load)
        workload = self._workload = steps.open_workload(cluster.bootstrap_servers)
        began_ns = time.monotonic_ns()
        workload.start()
        self._await_traffic(workload)
        yield workload
        self._await_traffic(workload)
        steps.record_load(self._lab.injections, began_ns)
        workload.stop_producers()
        steps.read_finally(workload, [cluster.own] if cluster.own else [])

    def judge(self) -> Result:
        """End the test's own cluster, judge the load and write the report.

        Raises PluginError when `load` was not used.
        """
        if self._workload is None:
            raise PluginError("nothing to judge: use `with urteil_history.load(topic):` first")
        lab, steps = self._lab, self._steps
        steps.end_clients(self._workload)
        lab.end_cluster()
        steps.save_facts()
        result = judge_collected(lab.run_dir, steps.facts, engine=lab.options.engine)
        draw(lab.run_dir)
        return result

    def close(self) -> None:
        if self._workload is not None:
            self._workload.stop()

    def _set_load(self, load: WorkloadSpec) -> None:
        """Make `load` the workload of the scenario, and write scenario.json again."""
        self._steps.scenario = replace(
            self._steps.scenario,
            about="a test that drives the lab by hand",
            workload=load,
            guarantees=("lost_write",),
            permits=("foreign_records",),
        )
        save(self._lab.run_dir / "scenario.json", self._steps.scenario)

    def _await_traffic(self, workload: Workload) -> None:
        """Wait until the minimum that a verdict requires was acknowledged from now on.

        The load of a fifth of a second is added, since a verdict counts in tenths of a second.
        """
        scenario = self._steps.scenario
        before = workload.acknowledged_count()
        required = scenario.minimum_acks + int(scenario.workload.rate_records_per_s / 5)
        if not workload.await_acked(before + required, deadline_s=TRAFFIC_DEADLINE_S):
            raise PluginError(
                f"{workload.acknowledged_count() - before} records were acknowledged within "
                f"{TRAFFIC_DEADLINE_S:g} s, a verdict requires {required}: raise `rate`, or see "
                f"the logs in {self._lab.run_dir}"
            )
