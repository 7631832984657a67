"""Nodes as processes: signals, states, and their end with the lab."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure, NodeState
from urteil.harness import stack_dumps
from urteil.harness.reaper import holders
from urteil.harness.runtimes.process import ProcessRuntime
from urteil.harness.runtimes.runtime import NodeSpec

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
LAB = """
import os, subprocess, sys, time
from pathlib import Path
from urteil.harness.reaper import start_reaper
from urteil.harness.runtimes.process import ProcessRuntime
from urteil.harness.runtimes.runtime import NodeSpec

runtime = ProcessRuntime(Path(sys.argv[1]), brokers=1, zookeepers=1)
sleep = NodeSpec(argv=["sleep", "600"], cwd=Path("/"))
runtime.start("one", sleep)
argv = ["sh", "-c", "setsid sleep 600 & exec sleep 600"]
runtime.start("two", NodeSpec(argv=argv, cwd=sleep.cwd))
runtime.start("three", sleep)
runtime.pause("three")
client = subprocess.Popen(["sleep", "600"])
print(start_reaper(), flush=True)
if os.fork() == 0:
    os.execvp("sleep", ["sleep", "600"])
time.sleep(600)
"""


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ProcessRuntime]:
    runtime = ProcessRuntime(tmp_path, brokers=1, zookeepers=1)
    yield runtime
    runtime.close()


def await_line(log: Path, count: int = 1) -> None:
    until(lambda: log.read_text().count("up") >= count)


def test_kill_ends_a_node_and_it_can_start_again(runtime: ProcessRuntime, tmp_path: Path) -> None:
    first = runtime.start("b1", NodeSpec(argv=SLEEP, cwd=tmp_path))
    assert first.state is NodeState.RUNNING
    await_line(tmp_path / "logs" / "b1.log")
    dead = runtime.kill("b1")
    assert (dead.state, dead.exit_code) == (NodeState.DEAD, -signal.SIGKILL)
    assert not psutil.pid_exists(dead.pid or 0)
    second = runtime.start("b1", NodeSpec(argv=SLEEP, cwd=tmp_path))
    await_line(tmp_path / "logs" / "b1.log", 2)
    assert (second.starts, runtime.unexpected_ends()) == (2, [])


def test_pause_stops_and_resume_goes_on(runtime: ProcessRuntime, tmp_path: Path) -> None:
    pid = runtime.start("b1", NodeSpec(argv=SLEEP, cwd=tmp_path)).pid
    assert runtime.pause("b1").state is NodeState.PAUSED
    assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
    assert runtime.resume("b1").state is NodeState.RUNNING
    assert psutil.Process(pid).status() != psutil.STATUS_STOPPED
    runtime.pause("b1")
    assert runtime.stop("b1", deadline_s=10).exit_code == -signal.SIGTERM


def test_node_that_ignores_sigterm_is_killed(runtime: ProcessRuntime, tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    argv = [sys.executable, "-c", deaf + "print('up', flush=True); time.sleep(600)"]
    runtime.start("b1", NodeSpec(argv=argv, cwd=tmp_path))
    await_line(tmp_path / "logs" / "b1.log")
    assert runtime.stop("b1", deadline_s=0.3).exit_code == -signal.SIGKILL


def test_hanging_node_dumps_stacks_into_its_log(
    runtime: ProcessRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_dumps, "DUMP_DEADLINE_S", 60.0)
    code = (
        "import faulthandler, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "faulthandler.register(signal.SIGQUIT); print('up', flush=True); time.sleep(600)"
    )
    runtime.start("b1", NodeSpec(argv=[sys.executable, "-c", code], cwd=tmp_path))
    await_line(tmp_path / "logs" / "b1.log")
    assert runtime.stop("b1", deadline_s=0.1).exit_code == -signal.SIGKILL
    assert 'File "<string>", line 1 in <module>' in runtime.log("b1")


def test_unexpected_node_exit_is_reported(runtime: ProcessRuntime, tmp_path: Path) -> None:
    runtime.start("b1", NodeSpec(argv=[sys.executable, "-c", "raise SystemExit(3)"], cwd=tmp_path))
    until(runtime.unexpected_ends)
    assert runtime.unexpected_ends()[0].exit_code == 3


def test_second_node_of_the_same_name_is_rejected(runtime: ProcessRuntime, tmp_path: Path) -> None:
    runtime.start("b1", NodeSpec(argv=SLEEP, cwd=tmp_path))
    with pytest.raises(LabFailure, match="runs already"):
        runtime.start("b1", NodeSpec(argv=SLEEP, cwd=tmp_path))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_lab_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    argv = [sys.executable, "-c", LAB, str(tmp_path)]
    lab = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert lab.stdout is not None
    token = lab.stdout.readline().strip()
    until(lambda: len(holders(token)) >= 6)
    os.kill(lab.pid, number)
    lab.wait(10)
    until(lambda: not holders(token), "a process outlived its lab")
    lab.stdout.close()
