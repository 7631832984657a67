"""Shrinking of a run on disk: the folder of its tries, how each is played, and the result."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from urteil.harness.hunt.shrinking.anomaly import Anomaly, Outcome, first_ns, outcome_of
from urteil.harness.hunt.shrinking.shrink_steps import Report, Step, shrink
from urteil.harness.hunt.shrinking.tries import Rule, Tries
from urteil.harness.run.runner import run_scenario
from urteil.harness.scenario import Scenario, load_facts, load_scenario, save
from urteil.harness.schedule import Schedule, save_schedule, schedule_of, with_schedule
from urteil.harness.verify.result import Result, load_result

SLACK_S = 5.0
"""The margin: a fault may affect a record that was sent before it began."""
_DROPPED = ("--schedule", "--duration-s", "--rate", "--engine", "--master", "--out")
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One shrinking of one run, in a folder of its own.

    `tries/` holds the runs, `tries.jsonl` their outcomes, `smallest.json` the smallest schedule,
    `shrink.json` the report. `deadline` is CLOCK_MONOTONIC in seconds.
    """

    run_dir: Path
    folder: Path
    anomaly: Anomaly
    rule: Rule
    deadline: float
    confirm: int = 5
    engine: str = "auto"

    def run(self, on_step: Callable[[Step], None], log: Callable[[str], None]) -> Report:
        """Shrink, continuing from the folder's contents. The report is also written to disk."""
        self.folder.mkdir(parents=True, exist_ok=True)
        scenario, result = load_scenario(self.run_dir), load_result(self.run_dir)
        tries = Tries(
            lambda schedule: self._play(scenario, schedule, log),
            self.anomaly,
            self.folder / f"tries-{self.anomaly.guarantee}-{self.anomaly.sub_kind or 'any'}.jsonl",
            rule=self.rule,
            deadline=self.deadline,
        )
        report = shrink(
            schedule_of(scenario),
            tries,
            until_s=self._until_s(result),
            confirm=self.confirm,
            on_step=on_step,
        )
        save_schedule(self.smallest, report.schedule)
        save(self.folder / "shrink.json", report)
        return report

    @property
    def smallest(self) -> Path:
        return self.folder / "smallest.json"

    def command(self) -> str:
        """The command that plays the smallest schedule."""
        facts = load_facts(self.run_dir)
        words = shlex.split(facts.command)
        if words[:2] != ["urteil", "run"]:
            words = ["urteil", "run", facts.scenario, "--seed", str(facts.seed)]
            words += ["--target", facts.target] if facts.target != "urteil" else []
            words += ["--mutant", facts.mutant] if facts.mutant else []
        kept_words = [
            word
            for n, word in enumerate(words)
            if word not in _DROPPED and (n == 0 or words[n - 1] not in _DROPPED)
        ]
        return shlex.join([*kept_words, "--schedule", str(self.smallest)])

    def _play(self, scenario: Scenario, schedule: Schedule, log: Callable[[str], None]) -> Outcome:
        """Play one run. The brokers' disks are kept where it shows the anomaly."""
        began = time.monotonic()
        run_dir, result = run_scenario(
            with_schedule(scenario, schedule),
            out=self.folder / "tries",
            engine=self.engine,
            log=log,
        )
        outcome = outcome_of(run_dir, result, time.monotonic() - began)
        if self.anomaly not in outcome.shows:
            for data in (*run_dir.glob("nodes/b*/data"), *run_dir.glob("west/nodes/b*/data")):
                shutil.rmtree(data, ignore_errors=True)
        return outcome

    def _until_s(self, result: Result) -> float | None:
        """Seconds from the begin of the load to the anomaly's first finding, and a margin."""
        before = [p.begin_ns for p in load_facts(self.run_dir).phases if p.name == "before"]
        shown_ns = first_ns(self.run_dir, result, self.anomaly)
        if not before or shown_ns is None:
            return None
        return (shown_ns - before[0]) / _SECOND_NS + SLACK_S
