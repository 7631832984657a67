"""A judgement that hangs ends as UNKNOWN, and reports where it hung."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.made_up_runs import ONE, healthy, named
from urteil.harness.verify import judge, judgement, synthetic, watchdog
from urteil.harness.verify.engines import engine as engines
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import Result, Status, Verdict, load_result

ENDLESS = "SELECT COUNT(*) AS n FROM range(1000000000) a CROSS JOIN range(1000000000) b"
ENDLESS_ONES = ("unclean_leader", "hole")
LIMIT = watchdog.VARIABLE


@pytest.fixture(autouse=True)
def _shared_answers() -> None:
    """Each judgement asks an engine of its own: its questions are to hang."""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    return tmp_path


def test_questions_without_end_are_interrupted_and_the_rest_is_judged(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ENDLESS_ONES:
        endless = replace(GUARANTEES[name], opportunities=ENDLESS)
        monkeypatch.setitem(GUARANTEES, name, endless)
    reached = threading.Event()
    translated = engines.to_duckdb

    def translate(query: str) -> str:
        if ENDLESS in query:
            reached.set()
        return translated(query)

    def soon(judging: Any, within_s: float) -> bool:
        """The limit is over as soon as the first of them was asked."""
        return ended(judging, within_s) if reached.is_set() else not reached.wait(60)

    ended = watchdog._Judging.join
    monkeypatch.setattr(engines, "to_duckdb", translate)
    monkeypatch.setattr(watchdog._Judging, "join", soon)
    monkeypatch.setattr(watchdog, "AGAIN_S", 2.0)
    monkeypatch.setenv(LIMIT, "3")
    result = judge(run_dir, engine="duckdb")
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0] == "the judgement hung: it had not ended after 3 s"
    for name in ENDLESS_ONES:
        assert named(result, name).status is Status.UNKNOWN
    assert named(result, "lost_write").status is Status.HOLDS
    assert load_result(run_dir).reasons == result.reasons
    assert "engine.py" in (run_dir / "stacks" / "judge.txt").read_text()


def test_query_that_ignores_interrupts_is_abandoned(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()

    def hang(*_: Any, **__: Any) -> Result:
        held.wait()
        raise AssertionError

    monkeypatch.setattr(judgement, "judge_run", hang)
    monkeypatch.setattr(watchdog, "GRACE_S", 0.1)
    monkeypatch.setenv(LIMIT, "0.1")
    result = judge(run_dir, engine="duckdb")
    held.set()
    assert (result.verdict, result.guarantees) == (Verdict.UNKNOWN, [])
    assert "in hang" in (run_dir / "stacks" / "judge.txt").read_text()


@pytest.mark.spark_long
def test_stalled_spark_is_killed_and_the_next_one_judges(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from urteil.harness.verify.engines import spark

    session = spark.start()
    os.kill(session.sparkContext._gateway.proc.pid, signal.SIGSTOP)
    monkeypatch.setenv(LIMIT, "5")
    result = judge(run_dir, engine="spark", session=session)
    assert result.reasons[0] == "the judgement hung: it had not ended after 5 s"
    assert "is stopped" in (run_dir / "stacks" / "spark.txt").read_text()
    monkeypatch.delenv(LIMIT)
    assert judge(run_dir, engine="spark").verdict is Verdict.PASS


@pytest.mark.parametrize("asked", ["soon", "0", "nan", "-5"])
def test_invalid_limit_is_rejected(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, asked)
    with pytest.raises(ValueError, match=f"{LIMIT}={asked} is no number of seconds above 0"):
        watchdog.limit_s(Path())


def test_more_rows_have_more_time(run_dir: Path) -> None:
    assert watchdog.LEAST_S < watchdog.limit_s(run_dir) < watchdog.LEAST_S + 1
