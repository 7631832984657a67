"""The steps of a run that `urteil run` and the pytest fixtures share.

`play.py` runs them in order, with a schedule of faults; a test calls them through `urteil/lab.py`.
`facts`, the content of run.json, is complete and true after each step.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from urteil.chaos.nemesis import Injection
from urteil.harness.clients.client_main import boot_id
from urteil.harness.clients.leadership_rotation import leadership_rounds
from urteil.harness.clients.processes import ClientPlace
from urteil.harness.clients.workload import Workload
from urteil.harness.cluster import Cluster, ExternalCluster
from urteil.harness.scenario import Phase, RunFacts, Scenario, clusters, save
from urteil.harness.stopwatch import Stopwatch


def new_facts(scenario: Scenario, command: str, *, run: str = "") -> RunFacts:
    """The facts of a run that begins now. `run` is its id, by default a random one."""
    return RunFacts(
        run=run or secrets.token_hex(4),
        seed=scenario.seed,
        scenario=scenario.name,
        target=scenario.target,
        runtime=scenario.runtime,
        boot_id=boot_id(),
        command=command,
        mutant=scenario.mutant,
    )


@dataclass(slots=True)
class Steps:
    """The steps of one run. `measure` is the stopwatch of its phases."""

    scenario: Scenario
    run_dir: Path
    facts: RunFacts
    measure: Stopwatch = field(init=False)

    def __post_init__(self) -> None:
        self.measure = Stopwatch(self.facts.seconds, self.facts.spent)

    def save_facts(self) -> None:
        """Write run.json."""
        save(self.run_dir / "run.json", self.facts)

    def start_cluster(self, cluster: Cluster | ExternalCluster) -> float:
        """Start the cluster. Returns the seconds until it was ready."""
        ready_s = cluster.start()
        self.facts.versions |= cluster.versions()
        self.facts.brokers = sorted({*self.facts.brokers, *cluster.data_dirs()})
        self.facts.withheld = cluster.missing_tables()
        lacks = cluster.missing_capabilities()
        self.facts.lacks = [*dict.fromkeys([*self.facts.lacks, *lacks])]
        return ready_s

    def open_workload(
        self,
        bootstrap: Sequence[str],
        *,
        second_bootstrap: Sequence[str] = (),
        wan_bootstrap: Sequence[str] = (),
        user_listeners: Sequence[str] = (),
        elsewhere: ClientPlace | None = None,
    ) -> Workload:
        """The clients of the run, not started yet, on the topics of `facts`."""
        return Workload(
            self.scenario,
            self.run_dir,
            bootstrap,
            self.facts.topics,
            self.facts.run,
            second_bootstrap=second_bootstrap,
            wan_bootstrap=wan_bootstrap,
            user_listeners=user_listeners,
            elsewhere=elsewhere,
        )

    def read_finally(
        self, workload: Workload, rotated: Sequence[Cluster | ExternalCluster] = ()
    ) -> None:
        """Read all topics from start to end, and end the consumers.

        Leadership rotates over the brokers of the clusters `rotated`; without any it stays as it
        is.
        """
        began_ns = time.monotonic_ns()
        with self.measure("final_reads/rounds"):
            for at, place in enumerate(clusters(self.scenario)):
                topics = [topic.name for topic in self.facts.topics if topic.cluster == place]
                if topics:
                    self._read_cluster(workload, place, topics, rotated[at] if rotated else None)
        with self.measure("final_reads/end of the consumers"):
            workload.finish_access_attempts()
            workload.stop_consumers()
        self.record_phase("final", began_ns)

    def _read_cluster(
        self,
        workload: Workload,
        place: str,
        topics: list[str],
        rotated: Cluster | ExternalCluster | None,
    ) -> None:
        """Read the topics of one cluster."""
        deadline_s = self.scenario.final_read_deadline_s
        rounds = None
        if rotated is not None:
            rounds = leadership_rounds(
                rotated.controls(),
                rotated.bootstrap,
                topics,
                deadline_s=deadline_s,
                report=self.facts.problems.append,
                restart=rotated.can_restart(),
            )
        self.facts.problems += workload.final_reads(deadline_s, rounds, cluster=place).problems

    def end_clients(self, workload: Workload) -> None:
        """End all running clients. Failures of clients are problems of the run."""
        workload.stop()
        self.facts.problems += workload.problems()

    def record_load(self, injections: Sequence[Injection], began_ns: int) -> None:
        """Record the phases of a load that ends now: before, during and after its faults."""
        ended_ns = time.monotonic_ns()
        first_ns = min((injection.begin_ns for injection in injections), default=ended_ns)
        last_ns = max(
            (injection.healed_ns or ended_ns for injection in injections), default=ended_ns
        )
        self.record_phase("before", began_ns, first_ns)
        if injections:
            self.record_phase("during", first_ns, last_ns)
            self.record_phase("after", last_ns, ended_ns)

    def record_phase(self, name: str, begin_ns: int, end_ns: int | None = None) -> None:
        """Record a phase that ended at `end_ns` (CLOCK_MONOTONIC), by default now."""
        ended_ns = time.monotonic_ns() if end_ns is None else end_ns
        self.facts.phases.append(Phase(name=name, begin_ns=begin_ns, end_ns=ended_ns))
