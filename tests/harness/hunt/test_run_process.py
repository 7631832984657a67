"""A run of a campaign is a process of its own, and ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import psutil
import pytest

from tests.harness.hunt.rows import row
from tests.waiting import until
from urteil.harness.hunt import Job, Row, run_process
from urteil.harness.hunt.run_process import play_run, play_runs
from urteil.harness.run.judging import COLLECTING

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


def test_caller_learns_that_a_run_has_only_to_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    program = tmp_path / "program"
    program.write_text(
        f"#!/bin/sh\necho '{COLLECTING}' >&2\nwhile [ ! -e {told} ]; do sleep 0.02; done\n"
    )
    program.chmod(0o700)
    monkeypatch.setattr(run_process, "start_reaper", lambda: None)
    monkeypatch.setattr(run_process.sys, "executable", str(program))
    row = play_run(Job(scenario="calm", seed=1), tmp_path, deadline_s=30, on_played=told.touch)
    assert row.reasons == [COLLECTING]


def test_error_in_the_thread_of_a_run_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(_job: Job, _out: Path, *, engine: str, on_played: Callable[[], None]) -> Row:
        raise OSError("no space left on device")

    monkeypatch.setattr(run_process, "play_run", play)
    jobs = [Job(scenario="calm", seed=seed) for seed in (1, 2)]
    with pytest.raises(OSError, match="no space left"):
        list(play_runs(jobs, tmp_path))


def test_run_begins_when_the_one_before_has_only_to_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, judged = Event(), Event()
    begun: list[tuple[int, bool]] = []

    def play(job: Job, _out: Path, *, engine: str, on_played: Callable[[], None]) -> Row:
        begun.append((job.seed, played.is_set()))
        if job.seed == 1:
            played.set()
            on_played()
            assert judged.wait(DEADLINE_S)
        else:
            judged.set()
            on_played()
        return row(job.scenario, job.seed)

    monkeypatch.setattr(run_process, "play_run", play)
    rows = play_runs([Job(scenario="calm", seed=1), Job(scenario="calm", seed=2)], tmp_path)
    assert [row.job.seed for row in rows] == [1, 2]
    assert begun == [(1, False), (2, True)]


def test_closed_iterator_ends_the_run_that_still_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Event()

    def play(job: Job, _out: Path, *, engine: str, on_played: Callable[[], None]) -> Row:
        if job.seed == 2:
            assert ended.wait(DEADLINE_S)
        on_played()
        return row(job.scenario, job.seed)

    monkeypatch.setattr(run_process, "play_run", play)
    monkeypatch.setattr(run_process, "end_runs", ended.set)
    rows = play_runs((Job(scenario="calm", seed=seed) for seed in (1, 2, 3)), tmp_path)
    assert next(rows).job.seed == 1
    rows.close()
    assert ended.is_set()


def running(pid: int) -> list[psutil.Process]:
    """The run that the campaign began; its reaper is none."""
    children = psutil.Process(pid).children()
    return [child for child in children if "run" in child.cmdline() and "calm" in child.cmdline()]
