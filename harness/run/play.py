"""Plays a run from nothing to evidence: cluster, load, faults, healing, final reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from urteil.chaos.nemesis import Injection, Nemesis
from urteil.chaos.observations import LabFailure
from urteil.chaos.schedule import plan_schedule
from urteil.harness import host_load
from urteil.harness.clients.leadership_rotation import leadership_rounds
from urteil.harness.clients.workload import Workload
from urteil.harness.cluster import Cluster, ExternalCluster, open_cluster
from urteil.harness.evidence.broker_lives import write_lives
from urteil.harness.run.heal_request import Healing
from urteil.harness.run.topics import create_topics, fit_topic
from urteil.harness.scenario import Phase, RunFacts, Scenario, TopicFact, save
from urteil.harness.schedule import save_schedule, schedule_of
from urteil.harness.stack_dumps import Stacks, limit_duration
from urteil.harness.stopwatch import Stopwatch

Log = Callable[[str], None]

ACKS_DEADLINE_S = 30.0
QUIET_S = 3.0
ROUNDS = 6
"""Of final reads, at most."""
SLACK_S = 300.0
"""For setup, the end of clients and brokers, and a slow machine."""


@dataclass(slots=True)
class Play:
    """One play of a scenario. `facts` is complete and true at any moment.

    `under_load` is called once the load runs: a cluster with short sessions needs the machine for
    itself while it starts. Failures of the lab become `facts.problems`; only an interrupt leaves
    `run` as an exception.
    """

    scenario: Scenario
    run_dir: Path
    facts: RunFacts
    log: Log
    _whole: bool = field(init=False, default=False)
    under_load: Callable[[], None]
    _stage: Stopwatch = field(init=False)
    _healing: Healing = field(init=False)
    _stacks: Stacks = field(init=False)

    def __post_init__(self) -> None:
        self._stage = Stopwatch(self.facts.seconds, self.facts.spent)
        self._healing = Healing(self.run_dir)
        self._stacks = Stacks(self.run_dir)

    def run(self) -> None:
        """Play the scenario. Cluster and clients have ended afterwards, whatever happened."""
        try:
            with self._healing.alive(), limit_duration(self._limit_s(), self._hung):
                self._with_cluster()
        except Exception as failure:
            self._problem(f"{type(failure).__name__}: {failure}")

    def _limit_s(self) -> float | None:
        """A run has a deadline at every step; a run that lasts longer than all of them hangs.

        The steps of a bulk load have no limit as long as answers arrive.
        """
        asked = self.scenario
        if asked.workload.kind == "bulk":
            return None
        reads_s = ROUNDS * asked.final_read_deadline_s
        return asked.duration_s + asked.recovery_deadline_s + reads_s + SLACK_S

    def _hung(self) -> None:
        self._take_stacks("the run hung")

    def _take_stacks(self, why: str) -> None:
        if folder := self._stacks.take(why):
            self.log(f"where every process stood: {folder}")

    def _with_cluster(self) -> None:
        scenario = self.scenario
        cluster = open_cluster(scenario, self.run_dir)
        self._stacks.sources.append(cluster.dump_sources)
        began_ns = time.monotonic_ns()
        try:
            with self._stage("setup"):
                with self._stage("setup/cluster"):
                    ready_s = cluster.start()
                self.log(f"{len(cluster.bootstrap)} brokers ready after {ready_s:.1f} s")
                self.facts.versions |= cluster.versions()
                self.facts.brokers = sorted(cluster.data_dirs())
                self.facts.withheld = cluster.withheld()
                with self._stage("setup/topics"):
                    create_topics(cluster.bootstrap, scenario)
                self.facts.topics = self._topics(cluster)
            save(self.run_dir / "run.json", self.facts)
            self._phase("setup", began_ns, time.monotonic_ns())
            self._with_clients(cluster)
            with self._stage("stop"):
                cluster.stop()
        except Exception as failure:
            self._take_stacks(f"{type(failure).__name__}: {failure}")
            raise
        finally:
            self._close(cluster)
            self._look_for_mark()

    def _close(self, cluster: Cluster | ExternalCluster) -> None:
        """Close the cluster. A failure, or an interrupt, is reported beside an earlier one and
        hides neither."""
        try:
            cluster.close()
        except Exception as failure:
            self._problem(f"{type(failure).__name__}: {failure}")

    def _with_clients(self, cluster: Cluster | ExternalCluster) -> None:
        workload = Workload(
            self.scenario,
            self.run_dir,
            cluster.bootstrap,
            self.facts.topics,
            self.facts.run,
            user_listeners=cluster.user_listeners,
        )
        self._stacks.sources.append(workload.dump_sources)
        try:
            with host_load.record_host_load(self.run_dir, self.facts.run):
                with self._stage("load"):
                    self._load(cluster, workload)
                with self._stage("final_reads"):
                    self._read_finally(cluster, workload)
        except Exception as failure:
            self._take_stacks(f"{type(failure).__name__}: {failure}")
            raise
        finally:
            self._note_lives(cluster)
            workload.stop()
            self.facts.problems += workload.problems()

    def _note_lives(self, cluster: Cluster | ExternalCluster) -> None:
        """Check once more that every node lives, and record brokers that ended by themselves."""
        controls, lives = cluster.controls(), []
        try:
            lives = [controls.status(node) for node in controls.brokers]
            controls.check()
        except LabFailure as failure:
            self._problem(str(failure))
        write_lives(self.run_dir, self.facts.run, time.monotonic_ns(), lives, controls.ended)

    def _load(self, cluster: Cluster | ExternalCluster, workload: Workload) -> None:
        scenario = self.scenario
        with self._stage("load/first acknowledgements"):
            workload.start()
            self._await_first_acks(workload)
        self.under_load()
        controls = cluster.controls()
        controls.attend(workload.controls())
        nemesis = Nemesis(
            controls,
            plan_schedule(
                scenario.faults, seed=scenario.seed, topic=scenario.workload.topics[0].name
            ),
            record=self.run_dir / "faults.jsonl",
            acked=workload.acked,
            log=self.log,
            at_once=scenario.at_once,
            heal_requested=self._healing.asked,
            on_manual_heal=self._healing.answer,
        )
        self._save_schedule()
        began_ns = time.monotonic_ns()
        recovered_s = None
        try:
            with self._stage("load/faults"):
                nemesis.play(duration_s=scenario.duration_s, quiet_s=QUIET_S)
            played_ns = time.monotonic_ns()
            workload.finish_bulk()
            with self._stage("load/recovery"):
                recovered_s = nemesis.heal(deadline_s=scenario.recovery_deadline_s)
            if recovered_s is not None and nemesis.injections:
                with self._stage("load/last acknowledgements"):
                    self._await_last_acks(workload, played_ns)
        finally:
            self.facts.problems += nemesis.problems
            self.facts.healed = nemesis.healed
            self._save_schedule(nemesis.injections, began_ns)
            self._phases(nemesis, began_ns, time.monotonic_ns())
        self._whole = recovered_s is not None
        if recovered_s is None:
            self._take_stacks("the cluster did not become healthy in time")
        else:
            self.log(f"healthy {recovered_s:.1f} s after the load's end")
        with self._stage("load/end of the clients"):
            workload.stop_producers()
            workload.finish_apps()
            workload.finish_transactions(whole=self._whole)
            if self._whole:
                workload.finish_reading()
        progress = workload.progress()
        self.log(f"{progress.acked} of {progress.invoked} records acknowledged")

    def _save_schedule(self, injections: Sequence[Injection] = (), began_ns: int = 0) -> None:
        """Write the planned schedule, and after the load what was played of it."""
        schedule = schedule_of(self.scenario, injections=injections, began_ns=began_ns)
        save_schedule(self.run_dir / "schedule.json", schedule)

    def _read_finally(self, cluster: Cluster | ExternalCluster, workload: Workload) -> None:
        """Final reads. Leadership rotates only in a healthy cluster."""
        began_ns = time.monotonic_ns()
        if self._whole:
            self._take_in_partitions(cluster, workload)
        deadline_s = self.scenario.final_read_deadline_s
        names = [topic.name for topic in self.facts.topics]
        rounds = None
        if self._whole:
            rounds = leadership_rounds(
                cluster.controls(),
                cluster.bootstrap,
                names,
                deadline_s=deadline_s,
                restart=cluster.can_restart(),
            )
        with self._stage("final_reads/rounds"):
            reads = workload.final_reads(deadline_s, rounds)
        with self._stage("final_reads/end of the consumers"):
            workload.finish_access_attempts()
            workload.stop_consumers()
        self.facts.problems += reads.problems
        self._phase("final", began_ns, time.monotonic_ns())

    def _take_in_partitions(self, cluster: Cluster | ExternalCluster, workload: Workload) -> None:
        """Include partitions that were added during the run in the final reads."""
        for at, topic in enumerate(self.facts.topics):
            found = max(topic.partitions, len(cluster.state.partitions(topic.name)))
            self.facts.topics[at] = replace(topic, partitions=found)
        workload.set_topics(self.facts.topics)

    def _await_first_acks(self, workload: Workload) -> None:
        """Wait for the acknowledgements that a verdict requires before the first fault.

        The load begins with them, on a slow machine as on a fast one. Without them it begins
        anyway: the verdict reports too little traffic.
        """
        load = self.scenario.workload
        if load.rate_records_per_s and load.producers:
            workload.await_acked(self.scenario.minimum_acks, deadline_s=ACKS_DEADLINE_S)

    def _await_last_acks(self, workload: Workload, since_ns: int) -> None:
        """The same after the faults, for producers without an end of their own."""
        load = self.scenario.workload
        if load.rate_records_per_s and load.producers and load.kind != "bulk":
            enough = self.scenario.minimum_acks
            workload.await_acked(enough, since_ns=since_ns, deadline_s=ACKS_DEADLINE_S)

    def _topics(self, cluster: Cluster | ExternalCluster) -> list[TopicFact]:
        facts = []
        for asked in self.scenario.workload.topics:
            topic = fit_topic(asked, self.scenario.cluster.brokers)
            facts.append(
                TopicFact(
                    name=topic.name,
                    topic_id=cluster.state.topic_id(topic.name) or "",
                    partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    config=topic.config,
                    copies=topic.copies,
                )
            )
        return facts

    def _phases(self, nemesis: Nemesis, began_ns: int, ended_ns: int) -> None:
        """before, during, after: around the first begin and the last healing of a fault."""
        begins = [one.begin_ns for one in nemesis.injections]
        heals = [one.healed_ns or ended_ns for one in nemesis.injections]
        first_ns, last_ns = min(begins, default=ended_ns), max(heals, default=ended_ns)
        self._phase("before", began_ns, first_ns)
        if begins:
            self._phase("during", first_ns, last_ns)
            self._phase("after", last_ns, ended_ns)

    def _phase(self, name: str, begin_ns: int, end_ns: int) -> None:
        self.facts.phases.append(Phase(name=name, begin_ns=begin_ns, end_ns=end_ns))

    def _look_for_mark(self) -> None:
        if self.scenario.mutant is not None:
            self.facts.mutant_ran = any(self.run_dir.glob("nodes/*/mutant.mark"))

    def _problem(self, text: str) -> None:
        self.facts.problems.append(text)
        self.log(f"problem: {text}")
