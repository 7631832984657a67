"""Time limit of a judgement: one that hangs is interrupted and ends as UNKNOWN, and the stacks
show where it hung."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from urteil.harness.scenario import load_facts, save
from urteil.harness.stack_dumps import Stacks
from urteil.harness.verify import evidence
from urteil.harness.verify.engines import engine as engines
from urteil.harness.verify.engines import spark
from urteil.harness.verify.engines.choice import Choice
from urteil.harness.verify.result import Result, Verdict

LEAST_S = 400.0
ROWS_PER_S = 20_000
"""Of sends, reads and replicas: a tenth of what two processors judge, and less."""
GRACE_S = 30.0
"""For what is left to judge once the engine was interrupted."""
AGAIN_S = 5.0
"""After so long it is interrupted again: what came next may hang, too."""
VARIABLE = "URTEIL_JUDGE_LIMIT_S"


def asked_limit_s() -> float | None:
    """What URTEIL_JUDGE_LIMIT_S says; ValueError when that is not a number above 0."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        return None
    with contextlib.suppress(ValueError):
        if float(asked) > 0:
            return float(asked)
    raise ValueError(f"{VARIABLE}={asked} is not a number of seconds above 0")


def limit_s(run_dir: Path) -> float:
    """How long the judgement of a run may take: by its rows, or as it was asked for."""
    return asked_limit_s() or LEAST_S + _rows(run_dir) / ROWS_PER_S


def _rows(run_dir: Path) -> int:
    """What can be counted of them."""
    with contextlib.suppress(OSError, pa.ArrowException):
        return sum(evidence.row_count(run_dir, table) for table in ("sends", "reads", "replicas"))
    return 0


def in_time(work: Callable[[], Result], run_dir: Path, choice: Choice) -> Result:
    """What `work`, a judgement of `run_dir`, finds. One that hangs is interrupted: what it judged
    until then counts, but is not a PASS.

    Where it stood is in `stacks/` of the run: `judge.txt` this process, `spark.txt` Spark's.
    """
    limit = limit_s(run_dir)
    judging = _Judging(work)
    try:
        if judging.join(limit):
            return judging.result()
    except KeyboardInterrupt:
        engines.interrupt(run_dir)
        raise
    why = f"the judgement hung: it had not ended after {limit:.0f} s"
    Stacks(run_dir, [spark.dump_sources], own="judge").take(why)
    return _unfinished_result(judging, run_dir, choice, why)


class _Judging:
    """A judgement in a thread of its own, which nobody has to wait for."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._found: Result | BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._work()
        except BaseException as failure:
            self._found = failure

    def join(self, within_s: float) -> bool:
        self._thread.join(within_s)
        return self._found is not None

    def result(self) -> Result:
        if isinstance(self._found, Result):
            return self._found
        assert self._found is not None
        raise self._found


def _ended_by_interrupts(judging: _Judging, run_dir: Path) -> bool:
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline:
        engines.interrupt(run_dir)
        if judging.join(min(AGAIN_S, GRACE_S)):
            return True
    return False


def _unfinished_result(judging: _Judging, run_dir: Path, choice: Choice, why: str) -> Result:
    from urteil.harness.verify.judgement import empty_result

    result: Result | None = None
    if _ended_by_interrupts(judging, run_dir):
        with contextlib.suppress(Exception):
            result = judging.result()
    if result is None:
        facts = load_facts(run_dir)
        result = empty_result(facts, choice.engine, [*facts.problems])
        result.engine_reason = choice.reason
    result.reasons.insert(len(result.reasons) if result.verdict is Verdict.FAIL else 0, why)
    if result.verdict is Verdict.PASS:
        result.verdict = Verdict.UNKNOWN
    save(run_dir / "result.json", result)
    return result
