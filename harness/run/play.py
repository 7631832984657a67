"""Plays a run: cluster, load, faults, healing, final reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from urteil.chaos.nemesis import Injection, Nemesis
from urteil.chaos.observations import LabFailure, NodeStatus
from urteil.chaos.schedule import plan_schedule
from urteil.harness import host_load
from urteil.harness.clients.workload import Workload, application_topics, prepare_workload
from urteil.harness.cluster import Cluster, ExternalCluster, open_cluster, open_second
from urteil.harness.evidence.broker_lives import write_lives
from urteil.harness.run.heal_request import HealRequests
from urteil.harness.run.playable import NotPlayable, fit_to_brokers
from urteil.harness.run.steps import Steps
from urteil.harness.run.topics import create_topics, fit_topic, fit_topics
from urteil.harness.scenario import RunFacts, Scenario, TopicFact, TopicSpec, clusters, save
from urteil.harness.schedule import save_schedule, schedule_of
from urteil.harness.stack_dumps import Stacks, limit_duration

Log = Callable[[str], None]
AnyCluster = Cluster | ExternalCluster

ACKS_DEADLINE_S = 30.0
QUIET_S = 3.0
ROUNDS = 6
"""Of final reads, at most."""
SLACK_S = 300.0
"""Time for setup, for the end of clients and brokers, and for a slow machine."""


@dataclass(slots=True)
class Play:
    """One play of a scenario. `facts` is complete and true at any moment.

    `on_load` is called once the load runs: a cluster with short sessions needs the machine for
    itself while it starts. Failures of the lab become `facts.problems`; only an interrupt leaves
    `run` as an exception, and NotPlayable if the brokers cannot play the scenario.
    """

    scenario: Scenario
    run_dir: Path
    facts: RunFacts
    log: Log
    on_load: Callable[[], None]
    _steps: Steps = field(init=False)
    _heal_requests: HealRequests = field(init=False)
    _stacks: Stacks = field(init=False)
    _is_healthy: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._steps = Steps(self.scenario, self.run_dir, self.facts)
        self._heal_requests = HealRequests(self.run_dir)
        self._stacks = Stacks(self.run_dir)

    def run(self) -> None:
        """Play the scenario. Cluster and clients have ended afterwards, also after a failure."""
        try:
            with (
                self._heal_requests.accept(),
                limit_duration(self._limit_s(), lambda: self._dump_stacks("the run hung")),
            ):
                self._run_cluster()
        except NotPlayable:
            raise
        except Exception as failure:
            self._note_problem(f"{type(failure).__name__}: {failure}")

    def _limit_s(self) -> float | None:
        """The time after which the run hangs, since each of its steps has a deadline. The steps of
        a bulk load have no limit while answers arrive."""
        scenario = self.scenario
        if scenario.workload.kind == "bulk":
            return None
        reads_s = ROUNDS * scenario.final_read_deadline_s
        return scenario.duration_s + scenario.recovery_deadline_s + reads_s + SLACK_S

    def _dump_stacks(self, reason: str) -> None:
        if folder := self._stacks.take(reason):
            self.log(f"where every process stood: {folder}")

    def _run_cluster(self) -> None:
        steps = self._steps
        with steps.measure("setup/programs"):
            prepare_workload(self.scenario)
        opened = [open_cluster(self.scenario, self.run_dir)]
        began_ns = time.monotonic_ns()
        try:
            if (second := open_second(self.scenario, self.run_dir)) is not None:
                opened.append(second)
            with steps.measure("setup"):
                for cluster in opened:
                    self._start_cluster(cluster)
                self._fit_to_brokers()
                with steps.measure("setup/topics"):
                    self._create_topics(opened)
            steps.save_facts()
            steps.record_phase("setup", began_ns)
            self._run_clients(opened)
            with steps.measure("stop"):
                for cluster in opened:
                    cluster.stop()
        except NotPlayable:
            raise
        except Exception as failure:
            self._dump_stacks(f"{type(failure).__name__}: {failure}")
            raise
        finally:
            for cluster in opened:
                self._close(cluster)
            self._record_mutant_mark()

    def _start_cluster(self, cluster: AnyCluster) -> None:
        self._stacks.sources.append(cluster.dump_sources)
        with self._steps.measure("setup/cluster"):
            ready_s = self._steps.start_cluster(cluster)
        self.log(f"{len(cluster.bootstrap)} brokers ready after {ready_s:.1f} s")

    def _fit_to_brokers(self) -> None:
        """Replace the scenario by the one that the brokers can play. Raises NotPlayable if there is
        none."""
        fitted = fit_to_brokers(self.scenario, self.facts.lacks)
        if fitted != self.scenario:
            self.log("producers have neither idempotence nor headers, as the brokers")
            self.scenario = self._steps.scenario = fitted
            save(self.run_dir / "scenario.json", fitted)

    def _create_topics(self, opened: Sequence[AnyCluster]) -> None:
        """Create the topics of each cluster, and describe the run's own in the facts. Topics of the
        application are created with them."""
        topics, foreign = fit_topics(self.scenario), application_topics(self.scenario.workload)
        for place, cluster in zip(clusters(self.scenario), opened, strict=True):
            own = [topic for topic in topics if topic.cluster == place]
            brokers = len(cluster.bootstrap)
            created = own + [
                fit_topic(topic, brokers) for topic in foreign if topic.cluster == place
            ]
            if created:
                create_topics(cluster.bootstrap, created, cluster.topic_config)
            self.facts.topics += [_describe_topic(topic, cluster) for topic in own]

    def _close(self, cluster: AnyCluster) -> None:
        """Close the cluster. A failure, or an interrupt, is reported beside an earlier one and
        hides neither."""
        try:
            cluster.close()
        except Exception as failure:
            self._note_problem(f"{type(failure).__name__}: {failure}")

    def _run_clients(self, opened: Sequence[AnyCluster]) -> None:
        steps, first = self._steps, opened[0]
        second = [address for cluster in opened[1:] for address in cluster.bootstrap]
        workload = steps.open_workload(
            first.bootstrap,
            second_bootstrap=second,
            wan_bootstrap=first.wan_bootstrap,
            user_listeners=first.user_listeners,
            elsewhere=first.clients_elsewhere,
        )
        self._stacks.sources.append(workload.dump_sources)
        try:
            with host_load.record_host_load(self.run_dir, self.facts.run):
                with steps.measure("load"):
                    self._load(opened, workload)
                with steps.measure("final_reads"):
                    if self._is_healthy:
                        self._include_added_partitions(opened, workload)
                    steps.read_finally(workload, opened if self._is_healthy else ())
        except Exception as failure:
            self._dump_stacks(f"{type(failure).__name__}: {failure}")
            raise
        finally:
            self._record_lives(opened)
            steps.end_clients(workload)

    def _record_lives(self, opened: Sequence[AnyCluster]) -> None:
        """Check again that every node lives, and record those that exited or stopped to serve."""
        every = [cluster.controls() for cluster in opened]
        lives: list[NodeStatus] = []
        try:
            for controls in every:
                lives += [
                    controls.status(node)
                    for node in controls.nodes
                    if node not in controls.zookeepers
                ]
                controls.check()
        except LabFailure as failure:
            self._note_problem(str(failure))
        ended = [end for controls in every for end in controls.unexpected_ends]
        closed = [node for controls in every for node in controls.closed_nodes()]
        write_lives(self.run_dir, self.facts.run, time.monotonic_ns(), lives, ended, closed)

    def _load(self, opened: Sequence[AnyCluster], workload: Workload) -> None:
        measure = self._steps.measure
        with measure("load/first acknowledgements"):
            workload.start()
            self._await_first_acks(workload)
        self.on_load()
        nemesis = self._open_nemesis(opened, workload)
        self._save_schedule()
        began_ns = time.monotonic_ns()
        recovered_s = None
        try:
            with measure("load/faults"):
                nemesis.play(duration_s=self.scenario.duration_s, quiet_s=QUIET_S)
            played_ns = time.monotonic_ns()
            workload.finish_bulk()
            with measure("load/recovery"):
                recovered_s = nemesis.heal(deadline_s=self.scenario.recovery_deadline_s)
            if recovered_s is not None and nemesis.injections:
                with measure("load/last acknowledgements"):
                    self._await_last_acks(workload, played_ns)
        finally:
            self.facts.problems += nemesis.problems
            self.facts.healed = nemesis.healed
            self._save_schedule(nemesis.injections, began_ns)
            self._steps.record_load(nemesis.injections, began_ns)
        self._is_healthy = recovered_s is not None
        if recovered_s is None:
            self._dump_stacks("the cluster did not become healthy in time")
        else:
            self.log(f"healthy {recovered_s:.1f} s after the load's end")
        with measure("load/end of the clients"):
            self._finish_load(workload)

    def _open_nemesis(self, opened: Sequence[AnyCluster], workload: Workload) -> Nemesis:
        scenario, every = self.scenario, [cluster.controls() for cluster in opened]
        for controls in every:
            controls.set_clients(workload.controls())
        return Nemesis(
            every[0],
            plan_schedule(
                scenario.faults, seed=scenario.seed, topic=scenario.workload.topics[0].name
            ),
            record=self.run_dir / "faults.jsonl",
            acked=workload.acknowledged_count,
            log=self.log,
            at_once=scenario.at_once,
            heal_requested=self._heal_requests.is_pending,
            on_manual_heal=self._heal_requests.answer,
            second=every[1] if len(every) > 1 else None,
        )

    def _finish_load(self, workload: Workload) -> None:
        """Let producers flush, and wait for clients that end by themselves."""
        workload.stop_producers()
        workload.finish_apps()
        workload.finish_transactions(is_healthy=self._is_healthy)
        if self._is_healthy:
            workload.finish_reading()
            workload.finish_sharing()
        progress = workload.progress()
        self.log(f"{progress.acked} of {progress.invoked} records acknowledged")

    def _save_schedule(self, injections: Sequence[Injection] = (), began_ns: int = 0) -> None:
        """Write the planned schedule, and after the load its played part."""
        schedule = schedule_of(self.scenario, injections=injections, began_ns=began_ns)
        save_schedule(self.run_dir / "schedule.json", schedule)

    def _include_added_partitions(self, opened: Sequence[AnyCluster], workload: Workload) -> None:
        """Include partitions that were added during the run in the final reads."""
        by_name = dict(zip(clusters(self.scenario), opened, strict=True))
        for at, topic in enumerate(self.facts.topics):
            state = by_name[topic.cluster].state
            partitions = max(topic.partitions, len(state.partitions(topic.name)))
            self.facts.topics[at] = replace(topic, partitions=partitions)
        workload.set_topics(self.facts.topics)

    def _await_first_acks(self, workload: Workload) -> None:
        """Wait for the acknowledgements that a verdict requires before the first fault. So the load
        begins with them on any machine. It begins without them after the deadline: the verdict then
        reports too little traffic."""
        load = self.scenario.workload
        if load.rate_records_per_s and load.producers:
            workload.await_acked(self.scenario.minimum_acks, deadline_s=ACKS_DEADLINE_S)

    def _await_last_acks(self, workload: Workload, since_ns: int) -> None:
        """Wait for the same number after the faults, if producers have no end of their own."""
        load = self.scenario.workload
        if load.rate_records_per_s and load.producers and load.kind != "bulk":
            enough = self.scenario.minimum_acks
            workload.await_acked(enough, since_ns=since_ns, deadline_s=ACKS_DEADLINE_S)

    def _record_mutant_mark(self) -> None:
        if self.scenario.mutant is not None:
            self.facts.mutant_ran = any(self.run_dir.glob("nodes/*/mutant.mark"))

    def _note_problem(self, text: str) -> None:
        self.facts.problems.append(text)
        self.log(f"problem: {text}")


def _describe_topic(topic: TopicSpec, cluster: AnyCluster) -> TopicFact:
    """The topic as created."""
    return TopicFact(
        name=topic.name,
        topic_id=cluster.state.topic_id(topic.name) or "",
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        config=topic.config,
        copies=topic.copies,
        cluster=topic.cluster,
    )
