"""A night: plays scenarios on every target with new seeds until its time is over."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import mean

import msgspec

from urteil.chaos.observations import LabFailure
from urteil.harness.hunt.archive import Archive, KnownSignature
from urteil.harness.hunt.disk_budget import prune_to, size_of
from urteil.harness.hunt.investigated_failure import Failure, guarantee_of
from urteil.harness.hunt.investigation import Investigator, OutOfTime
from urteil.harness.hunt.job import Job, Row
from urteil.harness.hunt.ledger import Ledger
from urteil.harness.hunt.matrix import ExpectedCatch
from urteil.harness.hunt.night_report import night_text
from urteil.harness.hunt.run_choice import AT, Candidate, candidates_of, next_of, unsupported_reason
from urteil.harness.hunt.run_process import prune
from urteil.harness.known_bugs import KnownBug
from urteil.harness.scenario import Scenario

GUESS_S = 60.0
REFUSALS = 5
LEAST_FREE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """A run that has begun, at `at` as in rows."""

    job: Job
    at: str


@dataclass(slots=True, kw_only=True)
class Night:
    """One night in a folder.

    `ledger.jsonl` and `table.md` are true at any moment. `runs/` holds every run that is not PASS,
    and every run of a mutant or published bug without its expected result. A folder that already
    has rows is continued. `play` plays a job into a folder, up to `at_once` from a thread each;
    `end_runs` ends those that still play when the night ends early. `weights` are as in
    run_choice.py. With a `history` and an `inspector`, failures with signatures that were not
    investigated before are investigated, also those of the mutants in `mixed_in`.
    """

    folder: Path
    scenarios: Sequence[Scenario]
    targets: Sequence[str]
    mutants: Sequence[ExpectedCatch]
    first_seed: int
    play: Callable[[Job, Path], Row]
    at_once: int = 1
    end_runs: Callable[[], None] = lambda: None
    runtime: str = "process"
    report: Callable[[Row], None] = lambda _row: None
    weights: Mapping[str, float] = field(default_factory=dict)
    mixed_in: frozenset[str] = frozenset()
    bugs: Sequence[KnownBug] = ()
    history: Archive | None = None
    inspector: Investigator | None = None
    on_known_signature: Callable[[KnownSignature], None] = lambda _signature: None
    budget_bytes: float = float("inf")
    known: set[str] = field(init=False, default_factory=set)
    ledger: Ledger = field(init=False)
    candidates: list[Candidate] = field(init=False)
    _playing: dict[Future[Row], Playing] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(self.folder / "ledger.jsonl")
        self.candidates = candidates_of(
            self.scenarios,
            self.targets,
            self.mutants,
            self.weights,
            seed=self.first_seed,
            mixed_in=self.mixed_in,
            bugs=self.bugs,
            runtime=self.runtime,
        )

    def hunt(self, deadline: float) -> None:
        """Play until `deadline` (CLOCK_MONOTONIC, seconds).

        No run begins that would end after it, by the past length of its scenario. Raises LabFailure
        when the lab refuses run after run, or the disk is nearly full: such a night would show
        nothing.
        """
        self.write()
        played = len(self.ledger.rows)
        for row in self.ledger.rows[:played]:
            self._store_run(row)
            self._investigate(row, deadline)
        with closing(self._play_until(deadline, played)) as ended:
            self._judge_rows(ended, deadline)

    def _play_until(self, deadline: float, first: int) -> Generator[Row, None, None]:
        """The rows of runs as they end. The night's own rows begin at `first`."""
        with ThreadPoolExecutor(self.at_once) as pool:
            try:
                while True:
                    while (job := self._due_job(deadline, first)) is not None:
                        playing = Playing(job=job, at=time.strftime(AT))
                        self._playing[pool.submit(self.play, job, self.folder / "runs")] = playing
                    if not self._playing:
                        return
                    ended, _ = wait(self._playing, return_when=FIRST_COMPLETED)
                    for run in sorted(ended, key=lambda run: run.exception() is not None):
                        del self._playing[run]
                        yield run.result()
            finally:
                if self._playing:
                    self.end_runs()

    def _due_job(self, deadline: float, first: int) -> Job | None:
        """The job to begin now; None while enough runs play, or if no run would end in time."""
        if len(self._playing) >= self.at_once:
            return None
        job = self.next_job()
        if job is None or time.monotonic() + self._expected_s(job) > deadline:
            return None
        self._check(self.ledger.rows[first:][-REFUSALS:])
        return job

    def _judge_rows(self, rows: Iterable[Row], deadline: float) -> None:
        for row in rows:
            row = prune(row) if self._is_expected(row) else row
            self.ledger.add(row)
            self.write()
            self.report(row)
            self._remember(row)
            self._investigate(row, deadline)
            self._prune()

    def _prune(self) -> None:
        room = self.budget_bytes - size_of(self.folder / "failures")
        prune_to(self.ledger.rows, room, frozenset(self.known))

    def next_job(self) -> Job | None:
        """The next job. The twin of a mutant or bug with findings comes first, because the mutant
        counts as caught only with it. Otherwise the candidate that is due most, under the first
        seed that was not played here."""
        played = {run.job for run in self._begun_runs()}
        for row in filter(self._is_caught, self.ledger.rows):
            if (twin := self._twin_of(row.job)) not in played:
                return twin
        candidate = next_of(self.candidates, self._last_played, self._plays, time.time())
        if candidate is None:
            return None
        return next(
            job for seed in count(self.first_seed) if (job := candidate.job(seed)) not in played
        )

    def _twin_of(self, job: Job) -> Job:
        """The same run without the bug: the unchanged broker, or the release that fixed it."""
        target = next((bug.fixed_target for bug in self.bugs if bug.name == job.bug), job.target)
        return msgspec.structs.replace(job, mutant=None, target=target)

    def _begun_runs(self) -> list[Row | Playing]:
        return [*self.ledger.rows, *self._playing.values()]

    def _plays(self, candidate: Candidate) -> int:
        return sum(run.job == candidate.job(run.job.seed) for run in self._begun_runs())

    def _last_played(self, candidate: Candidate) -> str:
        times = [run.at for run in self._begun_runs() if run.job == candidate.job(run.job.seed)]
        before = self.history.last_played(candidate.job(0)) if self.history else ""
        return max([before, *times])

    def _remember(self, row: Row) -> None:
        """Store the run in the archive, and report known signatures."""
        for signature in self._store_run(row):
            self.on_known_signature(signature)

    def _store_run(self, row: Row) -> list[KnownSignature]:
        """Store the run. Returns its known signatures; of runs alike, those without news are pruned
        first."""
        known_signatures = self.history.add(row) if self.history else []
        if row.signatures and len(known_signatures) == len(set(row.signatures)):
            self.known.add(row.run)
        return known_signatures

    def _investigate(self, row: Row, deadline: float) -> None:
        """Investigate until all signatures of the run are known, or the night is over."""
        history = self.history
        if self.inspector is None or history is None or not self._needs_investigation(row):
            return
        while signatures := [
            signature for signature in _by_time(row) if not history.failure(signature, row.job)
        ]:
            try:
                failures = self.inspector.investigate(row, signatures, deadline)
            except OutOfTime:
                return
            for failure in failures:
                history.keep(failure)
            self.write()

    def _needs_investigation(self, row: Row) -> bool:
        is_relevant = row.job.is_plain or row.job.mutant in self.mixed_in
        return is_relevant and row.verdict == "FAIL" and bool(row.run) and Path(row.run).is_dir()

    def failures(self) -> list[tuple[Failure, int]]:
        """The investigated failures, of this night or earlier, each with the number of its runs."""
        counts: dict[str, tuple[Failure, int]] = {}
        for row in self.ledger.rows if self.history else ():
            for signature in row.signatures:
                failure = self.history.failure(signature, row.job) if self.history else None
                if failure is not None:
                    key = f"{signature} {row.job.target} {row.job.mutant}"
                    counts[key] = failure, counts.get(key, (failure, 0))[1] + 1
        return list(counts.values())

    def _check(self, last: Sequence[Row]) -> None:
        """Raise LabFailure if the last runs since the night's begin or continuation show that it
        cannot go on."""
        if len(last) == REFUSALS and all(row.refused for row in last):
            raise LabFailure(
                f"{REFUSALS} runs were refused one after another: {last[-1].reasons[-1]}"
            )
        if shutil.disk_usage(self.folder).free < LEAST_FREE_BYTES:
            raise LabFailure(f"less than 1 GB is free for {self.folder}: make room, and go on")

    def unplayed_scenarios(self) -> list[str]:
        """The reasons for which scenarios are not played on a target."""
        reasons = [
            unsupported_reason(scenario, target, self.runtime)
            for target in self.targets
            for scenario in self.scenarios
        ]
        return list(dict.fromkeys(filter(None, reasons)))

    def verdict(self) -> str:
        """FAIL if a run of the unchanged broker failed. UNKNOWN if a run could not be judged, none
        was played, or a mixed-in mutant was never caught."""
        verdicts = {row.verdict for row in self.ledger.rows if row.job.is_plain}
        verdicts |= {"UNKNOWN"} if self.uncaught_mutants() or not verdicts else set()
        return next((verdict for verdict in ("FAIL", "UNKNOWN") if verdict in verdicts), "PASS")

    def uncaught_mutants(self) -> list[str]:
        """The mixed-in mutants that were played and never caught."""
        mixed = [row for row in self.ledger.rows if row.job.mutant in self.mixed_in]
        caught = {row.job.mutant for row in mixed if self._is_caught(row)}
        return sorted({str(row.job.mutant) for row in mixed} - {str(mutant) for mutant in caught})

    def write(self) -> None:
        """Write table.md atomically."""
        part = self.folder / "table.md.part"
        part.write_text(
            night_text(
                self.ledger.rows,
                self.mutants,
                self.unplayed_scenarios(),
                self.failures(),
                self.bugs,
            )
        )
        part.replace(self.folder / "table.md")

    def _is_expected(self, row: Row) -> bool:
        """Whether the run needs no investigation."""
        if row.job.bug is not None:
            return self._is_caught(row) or row.verdict == "PASS"
        if row.job.mutant is None:
            return row.verdict == "PASS"
        return row.job.mutant not in self.mixed_in and self._is_caught(row)

    def _is_caught(self, row: Row) -> bool:
        if row.job.bug is not None:
            return any(
                bug.is_shown_by(row.shows, row.must_find)
                for bug in self.bugs
                if (bug.name, bug.broken_target) == (row.job.bug, row.job.target)
            )
        guarantees = [mutant.guarantee for mutant in self.mutants if mutant.name == row.job.mutant]
        return any(name in row.violated for name in guarantees) and bool(row.mutant_ran)

    def _expected_s(self, job: Job) -> float:
        took = [
            row.seconds
            for row in self.ledger.rows
            if (row.job.scenario, row.job.target) == (job.scenario, job.target)
        ]
        return mean(took) if took else GUESS_S


def _by_time(row: Row) -> list[str]:
    """The signatures of a run, the earliest finding first."""
    last = float("inf")
    return sorted(
        row.signatures, key=lambda signature: row.first_s.get(guarantee_of(signature), last)
    )
