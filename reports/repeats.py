"""What the other runs of the same scenario and target, beside this one, say: counts with bounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from urteil.harness.bounds import at_least, at_most
from urteil.harness.verify.result import Result, Verdict

NEWEST = 300


class _Head(msgspec.Struct):
    """As much of a result as is compared."""

    verdict: Verdict
    scenario: str
    target: str
    runtime: str
    mutant: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """So many runs, of which so many failed; both bounds hold one-sided with 95 % confidence."""

    runs: int
    failed: int
    unknown: int
    lowest: float
    highest: float


def repeats(run_dir: Path, result: Result) -> Repeats:
    """This run and those in the folders beside it that played the same, UNKNOWN ones set apart."""
    beside = sorted(run_dir.resolve().parent.glob("*/result.json"))[-NEWEST:]
    mine = run_dir.resolve() / "result.json"
    heads = [head for path in {*beside} - {mine} if (head := _head(path)) is not None]
    same = [head.verdict for head in heads if _played(head) == _played(result)]
    verdicts = [*same, result.verdict]
    judged = [one for one in verdicts if one is not Verdict.UNKNOWN]
    failed = judged.count(Verdict.FAIL)
    return Repeats(
        runs=len(judged),
        failed=failed,
        unknown=len(verdicts) - len(judged),
        lowest=at_least(failed, len(judged)) if judged else 0.0,
        highest=at_most(failed, len(judged)) if judged else 1.0,
    )


def _played(one: _Head | Result) -> tuple[str, str, str, str | None]:
    return one.scenario, one.target, one.runtime, one.mutant


def _head(path: Path) -> _Head | None:
    """None for what is damaged, or linked from elsewhere."""
    if path.parent.is_symlink():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Head)
    except (OSError, msgspec.MsgspecError):
        return None
