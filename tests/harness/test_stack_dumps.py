"""Hanging processes dump their stacks; processes without a handler get no signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import until
from urteil.harness import stack_dumps as stacks_module
from urteil.harness.stack_dumps import DumpSource, Stacks, limit_duration

LISTENS = """
import threading
from urteil.harness.clients.stop import stop_on_signals
stop_on_signals()
def stuck_in_here():
    print("ready", flush=True)
    threading.Event().wait()
stuck_in_here()
"""
DEAF = "import threading; print('ready', flush=True); threading.Event().wait()"


class Child:
    def __init__(self, folder: Path, name: str, code: str) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-c", code], stdout=log, stderr=log)
        until(lambda: "ready" in self.log.read_text())
        self.source = DumpSource(name=name, pid=self.process.pid, output=self.log.read_text)


@pytest.fixture
def children(tmp_path: Path) -> Iterator[dict[str, Child]]:
    codes = {"listens": LISTENS, "deaf": DEAF, "stopped": LISTENS, "gone": LISTENS}
    running = {name: Child(tmp_path, name, code) for name, code in codes.items()}
    stopped = running["stopped"].process
    stopped.send_signal(signal.SIGSTOP)
    until(lambda: psutil.Process(stopped.pid).status() == psutil.STATUS_STOPPED)
    running["gone"].process.kill()
    running["gone"].process.wait()
    yield running
    for child in running.values():
        child.process.kill()
        child.process.wait()


def test_each_process_dumps_its_stacks_and_continues(
    tmp_path: Path, children: dict[str, Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks_module, "DUMP_DEADLINE_S", 60.0)
    stacks = Stacks(tmp_path, [lambda: [child.source for child in children.values()]])
    folder = stacks.take("the cluster did not become healthy in time")
    assert folder
    dumps = {path.stem: path.read_text() for path in folder.glob("*.txt")}
    assert "in stuck_in_here" in dumps["listens"]
    assert "ready" not in dumps["listens"], "what it said before is not an answer"
    assert "no handler for SIGQUIT" in dumps["deaf"]
    assert "is stopped" in dumps["stopped"]
    assert "it has ended" in dumps["gone"]
    assert "test_stack_dumps.py" in dumps["lab"]
    assert all(text.startswith("the cluster did not become") for text in dumps.values())
    alive = {name for name, child in children.items() if child.process.poll() is None}
    assert alive == {"listens", "deaf", "stopped"}
    assert stacks.take("once more") is None


def test_hung_block_is_interrupted_like_a_run() -> None:
    dumps: list[str] = []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with pytest.raises(TimeoutError, match="the run hung"):
            with limit_duration(0.2, lambda: dumps.append("hung")):
                subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=60)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert dumps == ["hung"]


def test_block_that_ends_in_time_is_not_interrupted() -> None:
    with limit_duration(60.0, pytest.fail), limit_duration(None, pytest.fail):
        pass


def test_keyboard_interrupt_is_not_converted() -> None:
    with pytest.raises(KeyboardInterrupt):
        with limit_duration(60.0, pytest.fail):
            raise KeyboardInterrupt
