"""Investigates a failed run: replays its seed to measure the rate, and shrinks its schedule."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from urteil.harness.hunt.investigated_failure import Failure, kind_of, rule_for
from urteil.harness.hunt.job import Job, Row
from urteil.harness.hunt.ledger import Ledger
from urteil.harness.hunt.run_process import Shrinking, prune
from urteil.harness.hunt.shrinking import Report


class OutOfTime(Exception):
    """The night ends before the investigation does. Its runs are kept for the next call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigator:
    """`folder` has one folder for each failed run. `shrink` returns None if the lab fails. A seed
    is replayed `reruns` times. Shrinking takes about `shrink_s` for each failure; 0 disables it."""

    folder: Path
    play: Callable[[Job, Path], Row]
    shrink: Callable[[Shrinking], Report | None]
    reruns: int = 10
    shrink_s: float = 1800.0
    log: Callable[[str], None] = lambda _line: None

    def investigate(self, row: Row, signatures: Sequence[str], deadline: float) -> list[Failure]:
        """Investigate the first of `signatures`, and those others that its smallest schedule also
        shows.

        Raises OutOfTime when `deadline` (CLOCK_MONOTONIC, seconds) comes first.
        """
        folder = self.folder / Path(row.run).name
        folder.mkdir(parents=True, exist_ok=True)
        reruns = self._repeat_run(row, folder, deadline)
        failures = [_failure_rate(row, signature, reruns) for signature in signatures]
        if self.reruns and not failures[0].hits:
            ended = f"not shown again in {self.reruns} runs"
            return [msgspec.structs.replace(failures[0], ended=ended)]
        if not self.shrink_s:
            return [msgspec.structs.replace(failure, ended="not shrunk") for failure in failures]
        return self._shrink_failures(row, folder, failures, deadline)

    def _repeat_run(self, row: Row, folder: Path, deadline: float) -> list[Row]:
        ledger = Ledger(folder / "ledger.jsonl")
        while len(ledger.rows) < self.reruns:
            if time.monotonic() + row.seconds > deadline:
                raise OutOfTime
            played = prune(self.play(row.job, folder / "runs"))
            if played.refused:
                raise OutOfTime
            ledger.add(played)
            outcome = ", ".join(played.shows) or played.verdict
            self.log(f"again {len(ledger.rows)} of {self.reruns}: {outcome}")
        return ledger.rows

    def _shrink_failures(
        self, row: Row, folder: Path, failures: Sequence[Failure], deadline: float
    ) -> list[Failure]:
        first = failures[0]
        left_s = deadline - time.monotonic() - row.seconds
        if left_s < row.seconds:
            raise OutOfTime
        kind = kind_of(first.signature)
        guarantee, _, sub_kind = kind.partition("/")
        into = folder / "-".join(filter(None, (guarantee, sub_kind.replace("/", "-"))))
        self.log(f"shrinking {kind}; its steps are in {into / 'shrink.log'}")
        shrinking = Shrinking(
            run=Path(row.run),
            guarantee=guarantee,
            sub_kind=sub_kind,
            rule=rule_for(first.hits, first.tries),
            into=into,
            seconds=min(self.shrink_s, left_s),
        )
        report = self.shrink(shrinking)
        if report is not None and report.ended == "budget" and left_s < self.shrink_s:
            raise OutOfTime
        _remove_tries(into, "" if report is None else report.run)
        also_shown = [] if report is None else _other_anomalies(report)
        return [
            _with_shrink_report(failure, report, into)
            for failure in failures
            if failure is first or kind_of(failure.signature) in also_shown
        ]


def _failure_rate(row: Row, signature: str, reruns: Sequence[Row]) -> Failure:
    hits = sum(kind_of(signature) in rerun.shows for rerun in reruns)
    return Failure(signature=signature, job=row.job, at=row.at, hits=hits, tries=len(reruns))


def _other_anomalies(report: Report) -> list[str]:
    """The other violations of the smallest schedule's runs."""
    kept_steps = [step for step in report.steps if step.kept]
    return [anomaly.name for anomaly in kept_steps[-1].others] if kept_steps else []


def _with_shrink_report(failure: Failure, report: Report | None, folder: Path) -> Failure:
    if report is None:
        return msgspec.structs.replace(failure, ended="the lab failed", folder=str(folder))
    has_smallest = report.ended in ("smallest", "budget") and report.tries > 0
    return msgspec.structs.replace(
        failure,
        ended=report.ended,
        smallest=report.schedule if has_smallest else None,
        smallest_hits=report.hits,
        smallest_tries=report.tries,
        folder=str(folder),
    )


def _remove_tries(folder: Path, kept_run: str) -> None:
    """Remove all tries except one that shows the smallest schedule."""
    for folder_or_link in (folder / "tries").glob("*"):
        if folder_or_link.is_symlink():
            folder_or_link.unlink()
        elif folder_or_link.resolve() != Path(kept_run).resolve():
            shutil.rmtree(folder_or_link, ignore_errors=True)
