"""A run is judged by one process at a time."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, healthy
from urteil.harness.run import judging
from urteil.harness.run.judging import judge_again
from urteil.harness.verify import judge, synthetic
from urteil.harness.verify.result import Result


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
