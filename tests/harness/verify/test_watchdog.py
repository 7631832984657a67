"""A judgement that hangs ends as UNKNOWN, and reports where it hung."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, healthy, named
from urteil.harness.verify import judge, judgement, synthetic, watchdog
from urteil.harness.verify.engines import engine as engines
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import Result, Status, Verdict, load_result

ENDLESS = "SELECT COUNT(*) AS n FROM range(1000000000) a CROSS JOIN range(1000000000) b"
HANGING = ("unclean_leader", "hole")
LIMIT = watchdog.VARIABLE


@pytest.fixture(autouse=True)
def _shared_answers() -> None:
    """Each judgement has an engine of its own: its queries must hang."""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    return tmp_path


def test_endless_queries_are_interrupted_and_the_others_are_judged(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in HANGING:
        endless = replace(GUARANTEES[name], opportunities=ENDLESS)
        monkeypatch.setitem(GUARANTEES, name, endless)
    reached = threading.Event()
    to_duckdb = engines.to_duckdb

    def translate(query: str) -> str:
        if ENDLESS in query:
            reached.set()
        return to_duckdb(query)

    def join_at_once(judging: Any, within_s: float) -> bool:
        """The limit ends as soon as the first endless query has begun."""
        return join(judging, within_s) if reached.is_set() else not reached.wait(60)

    join = watchdog._Judging.join
    monkeypatch.setattr(engines, "to_duckdb", translate)
    monkeypatch.setattr(watchdog._Judging, "join", join_at_once)
    monkeypatch.setattr(watchdog, "REPEAT_S", 2.0)
    monkeypatch.setenv(LIMIT, "3")
    result = judge(run_dir, engine="duckdb")
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0] == "the judgement hung: it had not ended after 3 s"
    for name in HANGING:
        assert named(result, name).status is Status.UNKNOWN
    assert named(result, "lost_write").status is Status.HOLDS
    assert load_result(run_dir).reasons == result.reasons
    assert "engine.py" in (run_dir / "stacks" / "judge.txt").read_text()


def test_query_that_ignores_interrupts_is_abandoned(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def hang(*_: Any, **__: Any) -> Result:
        release.wait()
        raise AssertionError

    monkeypatch.setattr(judgement, "judge_run", hang)
    monkeypatch.setattr(watchdog, "GRACE_S", 0.1)
    monkeypatch.setenv(LIMIT, "0.1")
    result = judge(run_dir, engine="duckdb")
    release.set()
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


@pytest.mark.parametrize("text", ["soon", "0", "nan", "-5"])
def test_invalid_limit_is_rejected(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, text)
    with pytest.raises(ValueError, match=f"{LIMIT}={text} is not a number of seconds above 0"):
        watchdog.limit_s(Path())


def test_limit_grows_with_the_rows(run_dir: Path) -> None:
    assert watchdog.LEAST_S < watchdog.limit_s(run_dir) < watchdog.LEAST_S + 1
