"""Failures among the runs of one scenario and target in the same folder, with bounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from urteil.harness.confidence import lower_bound, upper_bound
from urteil.harness.verify.result import Result, Verdict

NEWEST = 300


class _Head(msgspec.Struct):
    """The fields of a result that identify what was played."""

    verdict: Verdict
    scenario: str
    target: str
    runtime: str
    mutant: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRuns:
    """Counts of runs; both bounds are one-sided with 95 % confidence."""

    runs: int
    failed: int
    unknown: int
    lowest: float
    highest: float


def repeats(run_dir: Path, result: Result) -> RepeatedRuns:
    """Count this run and the runs beside it with the same scenario, target, runtime and mutant."""
    beside = sorted(run_dir.resolve().parent.glob("*/result.json"))[-NEWEST:]
    own_result = run_dir.resolve() / "result.json"
    heads = [head for path in {*beside} - {own_result} if (head := _head(path)) is not None]
    same = [head.verdict for head in heads if _identity(head) == _identity(result)]
    verdicts = [*same, result.verdict]
    judged = [verdict for verdict in verdicts if verdict is not Verdict.UNKNOWN]
    failed = judged.count(Verdict.FAIL)
    return RepeatedRuns(
        runs=len(judged),
        failed=failed,
        unknown=len(verdicts) - len(judged),
        lowest=lower_bound(failed, len(judged)) if judged else 0.0,
        highest=upper_bound(failed, len(judged)) if judged else 1.0,
    )


def _identity(run: _Head | Result) -> tuple[str, str, str, str | None]:
    return run.scenario, run.target, run.runtime, run.mutant


def _head(path: Path) -> _Head | None:
    """The head of a result; None if it is damaged or its folder is a link."""
    if path.parent.is_symlink():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Head)
    except (OSError, msgspec.MsgspecError):
        return None
