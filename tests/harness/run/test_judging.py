"""A run is judged by one process at a time, and its rare states are counted."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, healthy
from urteil.harness.run import judging
from urteil.harness.run.judging import judge_again, judge_collected
from urteil.harness.verify import judge, synthetic
from urteil.harness.verify.rare_states import counting
from urteil.harness.verify.rare_states.counts import load_counts
from urteil.harness.verify.result import Result, load_result


def test_judgement_waits_for_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both work in one folder: the one took away what the other was about to read."""
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    events: list[str] = []

    def began(run_dir: Path, **more: object) -> Result:
        events.append("began")
        return judge(run_dir, engine="duckdb")

    monkeypatch.setattr(judging, "judge", began)
    thread = threading.Thread(
        target=lambda: events.append(judge_again(tmp_path, engine="duckdb").verdict)
    )
    with (tmp_path / "judge.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread.start()
        thread.join(1.0)
        assert events == []
    thread.join(60.0)
    assert events == ["began", "PASS"]


def test_judgement_counts_rare_states(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    result = judge_again(tmp_path, engine="duckdb")
    assert (result.verdict, result) == ("PASS", load_result(tmp_path))
    counts = load_counts(tmp_path)
    assert counts is not None
    assert counts.reached["unclean_election"] == 0
    assert "rare states" in result.seconds


def test_counts_that_fail_leave_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    facts, logged = synthetic.facts(ONE), list[str]()
    monkeypatch.setattr(counting, "prepare", lambda *_: {}["none"])
    result = judge_collected(tmp_path, facts, engine="duckdb", log=logged.append)
    assert (result.verdict, load_counts(tmp_path)) == ("PASS", None)
    assert "the rare states cannot be counted: KeyError: 'none'" in logged
