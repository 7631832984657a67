"""Time limit of a judgement: one that exceeds it is interrupted and ends as UNKNOWN. Stack dumps
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
"""Rows of sends, reads and replicas: at most a tenth of what two processors judge."""
GRACE_S = 30.0
"""The time for the rest of the judgement after the engine was interrupted."""
REPEAT_S = 5.0
"""The interval between interrupts: the next query may hang, too."""
VARIABLE = "URTEIL_JUDGE_LIMIT_S"


def configured_limit_s() -> float | None:
    """The value of URTEIL_JUDGE_LIMIT_S. Raises ValueError unless it is a number above 0."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        if float(text) > 0:
            return float(text)
    raise ValueError(f"{VARIABLE}={text} is not a number of seconds above 0")


def limit_s(run_dir: Path) -> float:
    """The time limit for the judgement of a run: the configured one, or one by its rows."""
    return configured_limit_s() or LEAST_S + _rows(run_dir) / ROWS_PER_S


def _rows(run_dir: Path) -> int:
    """The rows of the large tables; 0 if a file cannot be read."""
    with contextlib.suppress(OSError, pa.ArrowException):
        return sum(evidence.row_count(run_dir, table) for table in ("sends", "reads", "replicas"))
    return 0


def in_time(work: Callable[[], Result], run_dir: Path, choice: Choice) -> Result:
    """Run `work`, a judgement of `run_dir`, and return its result. A judgement that exceeds the
    limit is interrupted: what it judged until then counts, but the verdict is never PASS.

    The run's folder `stacks/` then has the stacks of this process (`judge.txt`) and of Spark
    (`spark.txt`).
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
    """A judgement in a daemon thread."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._outcome: Result | BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="judge", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._work()
        except BaseException as failure:
            self._outcome = failure

    def join(self, within_s: float) -> bool:
        self._thread.join(within_s)
        return self._outcome is not None

    def result(self) -> Result:
        if isinstance(self._outcome, Result):
            return self._outcome
        assert self._outcome is not None
        raise self._outcome


def _ends_by_interrupts(judging: _Judging, run_dir: Path) -> bool:
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline:
        engines.interrupt(run_dir)
        if judging.join(min(REPEAT_S, GRACE_S)):
            return True
    return False


def _unfinished_result(judging: _Judging, run_dir: Path, choice: Choice, why: str) -> Result:
    from urteil.harness.verify.judgement import empty_result

    result: Result | None = None
    if _ends_by_interrupts(judging, run_dir):
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
