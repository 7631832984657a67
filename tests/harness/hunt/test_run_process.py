"""A run of a campaign is a process of its own, and ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.waiting import until
from urteil.harness.hunt import Job
from urteil.harness.hunt.run_process import play_run

KEEPER = """
from pathlib import Path
from urteil.harness.hunt import Job
from urteil.harness.hunt.run_process import play_run
play_run(Job(scenario="calm", seed=1), Path({out!r}))
"""
DEADLINE_S = 60.0


def test_rejected_job_is_a_row_with_the_reason(tmp_path: Path) -> None:
    row = play_run(Job(scenario="clam", seed=1), tmp_path)
    assert row.verdict == "UNKNOWN"
    assert any("did you mean calm" in reason for reason in row.reasons)
    assert row.run == ""


def test_run_beyond_its_deadline_is_ended(tmp_path: Path) -> None:
    row = play_run(Job(scenario="calm", seed=1), tmp_path, deadline_s=0.1)
    assert row.verdict == "UNKNOWN"
    assert "did not end within" in row.reasons[-1]


def test_killed_campaign_leaves_no_run_process(tmp_path: Path) -> None:
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER.format(out=str(tmp_path))])
    runs = until(lambda: running(keeper.pid), "no run began")
    keeper.send_signal(signal.SIGKILL)
    keeper.wait()
    _, alive = psutil.wait_procs(runs, timeout=DEADLINE_S)
    assert alive == []


def running(pid: int) -> list[psutil.Process]:
    """The run that the campaign began; its reaper is none."""
    children = psutil.Process(pid).children()
    return [child for child in children if "run" in child.cmdline() and "calm" in child.cmdline()]
