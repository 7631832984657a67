"""A throttled process runs for its share of the time, and fully afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure, NodeState
from urteil.harness.runtimes.process import ProcessRuntime
from urteil.harness.runtimes.runtime import NodeSpec

SPIN = "open('spins', 'x').close()\nwhile True: pass"


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ProcessRuntime]:
    runtime = ProcessRuntime(tmp_path, brokers=1, zookeepers=1)
    runtime.start("b1", NodeSpec(argv=[sys.executable, "-c", SPIN], cwd=tmp_path))
    until((tmp_path / "spins").exists)  # one that still loads its modules needs descriptors
    yield runtime
    runtime.close()


def share(runtime: ProcessRuntime, for_s: float) -> float:
    """Of a processor, that b1 takes for so many seconds, or how long they last here."""
    process = psutil.Process(runtime.status("b1").pid)
    before, began = process.cpu_times().user, time.monotonic()
    time.sleep(for_s)  # what is measured
    return (float(process.cpu_times().user) - before) / (time.monotonic() - began)


def until_throttled(runtime: ProcessRuntime, times: int) -> None:
    until(lambda: runtime.cpu_throttling("b1").throttled >= times)


def test_throttled_process_uses_its_share(runtime: ProcessRuntime) -> None:
    runtime.throttle_cpu("b1", 0.1)
    until_throttled(runtime, 2)
    assert share(runtime, 2.0) < 0.4
    assert runtime.restore_cpu("b1").cpus is None
    assert psutil.Process(runtime.status("b1").pid).status() != psutil.STATUS_STOPPED


def test_throttled_process_can_be_paused_killed_and_started(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    runtime.throttle_cpu("b1", 0.5)
    until_throttled(runtime, 1)
    assert runtime.pause("b1").state is NodeState.PAUSED
    assert share(runtime, 0.3) == 0
    assert runtime.resume("b1").state is NodeState.RUNNING
    assert runtime.kill("b1").state is NodeState.DEAD
    runtime.start("b1", NodeSpec(argv=[sys.executable, "-c", "input()"], cwd=tmp_path))
    assert runtime.cpu_throttling("b1").cpus is None


def test_descriptors_of_a_dead_process_raise(runtime: ProcessRuntime) -> None:
    assert runtime.local_pid("b1") == runtime.status("b1").pid
    runtime.kill("b1")
    with pytest.raises(LabFailure, match="b1 does not run"):
        runtime.local_pid("b1")


def test_limits_are_read_from_the_living_process(runtime: ProcessRuntime) -> None:
    from urteil.harness.runtimes.file_descriptors import limit_descriptors, read_descriptors

    pid = runtime.local_pid("b1")
    before = read_descriptors("b1", pid)
    assert limit_descriptors("b1", pid, 2).limit == 2
    done = subprocess.run(
        ["prlimit", f"--pid={pid}", "--nofile", "--raw", "--noheadings", "--output=SOFT"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "2"
    assert limit_descriptors("b1", pid, before.limit).limit == before.limit
