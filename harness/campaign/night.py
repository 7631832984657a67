"""The hunt: every scenario on every target under ever new seeds, until the time is up."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import mean

from urteil.chaos.controls import LabFailure
from urteil.chaos.faults import FAULTS
from urteil.harness.campaign.history import History, Seen
from urteil.harness.campaign.job import Job, Row
from urteil.harness.campaign.ledger import Ledger
from urteil.harness.campaign.matrix import Meant
from urteil.harness.campaign.play import prune
from urteil.harness.campaign.pruning import prune_to
from urteil.harness.campaign.table import night_text
from urteil.harness.scenario import Scenario

GUESS_S = 60.0
REFUSALS = 5
LEAST_FREE_BYTES = 1 << 30


def unfit(scenario: Scenario, target: str) -> str:
    """Why a scenario cannot be played on a target in processes; empty when it can."""
    if scenario.runtime != "process":
        return f"{scenario.name} needs --runtime {scenario.runtime}"
    named = [one.fault for one in scenario.faults]
    told = [FAULTS[name].unfit(runtime=scenario.runtime, target=target) for name in named]
    return next(filter(None, told), "")


@dataclass(slots=True, kw_only=True)
class Night:
    """One hunt in a folder: `ledger.jsonl` and `table.md` are true at any moment, `runs/` holds
    every run that is not PASS (of a mutant: that is not what it was meant to be).

    `play` plays a job into a folder. A folder that has rows already is gone on with.
    """

    folder: Path
    scenarios: Sequence[Scenario]
    targets: Sequence[str]
    mutants: Sequence[Meant]
    first_seed: int
    play: Callable[[Job, Path], Row]
    told: Callable[[Row], None] = lambda _row: None
    history: History | None = None
    recognised: Callable[[Seen], None] = lambda _seen: None
    budget_bytes: float = float("inf")
    known: set[str] = field(init=False, default_factory=set)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(self.folder / "ledger.jsonl")

    def hunt(self, deadline: float) -> None:
        """Play until `deadline` (CLOCK_MONOTONIC, seconds): no run is begun that would not end
        before it, by what its scenario took so far.

        LabFailure when the lab refuses run after run, or the disk is nearly full: a night of that
        would tell nothing.
        """
        self.write()
        for job in self.jobs():
            if self.ledger.find(job):
                continue
            if time.monotonic() + self._expected_s(job) > deadline:
                return
            self._check()
            row = self.play(job, self.folder / "runs")
            row = prune(row) if self._expected(row) else row
            self.ledger.add(row)
            self.write()
            self.told(row)
            self._remember(row)

    def _remember(self, row: Row) -> None:
        """In the history; a run of which all was seen before goes before others of its kind."""
        seen = self.history.add(row) if self.history else []
        for one in seen:
            self.recognised(one)
        if row.signatures and len(seen) == len(set(row.signatures)):
            self.known.add(row.run)
        prune_to(self.ledger.rows, self.budget_bytes, frozenset(self.known))

    def _check(self) -> None:
        last = self.ledger.rows[-REFUSALS:]
        if len(last) == REFUSALS and all(row.refused for row in last):
            raise LabFailure(
                f"{REFUSALS} runs were refused one after another: {last[-1].reasons[-1]}"
            )
        if shutil.disk_usage(self.folder).free < LEAST_FREE_BYTES:
            raise LabFailure(f"less than 1 GB is free for {self.folder}: make room, and go on")

    def jobs(self) -> Iterator[Job]:
        """Round after round, each under a seed of its own and in an order drawn by it; with a
        history, what was not played for longest comes first."""
        seed = self.first_seed
        while self.scenarios and self.targets:
            jobs = [
                Job(scenario=scenario.name, seed=seed, target=target)
                for target in self.targets
                for scenario in self.scenarios
                if not unfit(scenario, target)
            ]
            if "urteil" in self.targets:
                jobs += [
                    Job(scenario=one.scenario, seed=seed, mutant=one.name) for one in self.mutants
                ]
            if not jobs:
                return
            Random(seed).shuffle(jobs)
            if self.history is not None:
                jobs.sort(key=self.history.last_played)
            yield from jobs
            seed += 1

    def left_out(self) -> list[str]:
        """Why scenarios are not played on a target."""
        told = [unfit(scenario, target) for target in self.targets for scenario in self.scenarios]
        return list(dict.fromkeys(filter(None, told)))

    def verdict(self) -> str:
        """FAIL when any run of a broker as it is failed, UNKNOWN when any could not be judged."""
        plain = {row.verdict for row in self.ledger.rows if row.job.mutant is None}
        return next((one for one in ("FAIL", "UNKNOWN") if one in plain), "PASS")

    def write(self) -> None:
        """table.md, whole or not at all."""
        part = self.folder / "table.md.part"
        part.write_text(night_text(self.ledger.rows, self.mutants, self.left_out()))
        part.replace(self.folder / "table.md")

    def _expected(self, row: Row) -> bool:
        """Whether there is nothing to look into."""
        if row.job.mutant is None:
            return row.verdict == "PASS"
        meant = [one.guarantee for one in self.mutants if one.name == row.job.mutant]
        return any(name in row.violated for name in meant) and bool(row.mutant_ran)

    def _expected_s(self, job: Job) -> float:
        took = [
            row.seconds
            for row in self.ledger.rows
            if (row.job.scenario, row.job.target) == (job.scenario, job.target)
        ]
        return mean(took) if took else GUESS_S
