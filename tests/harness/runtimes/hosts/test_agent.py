"""The agent of a host over pipes: its operations, and that everything ends with it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.waiting import until
from urteil.chaos.loopback import CLAIM_PORT, HIGHEST_NETWORK
from urteil.harness.host_load import METRIC
from urteil.harness.reaper import VARIABLE, holders
from urteil.harness.runtimes.hosts import agent as agent_module
from urteil.harness.runtimes.hosts.messages import LENGTH_BYTES, Request, Response, encode

SLEEP = ["sh", "-c", "echo up; sleep 600 & exec sleep 600"]
ENDED_S = 0.8 * agent_module.SILENCE_S
"""Before the agent would end for silence."""


class Lab:
    """The lab's end of the pipes."""

    def __init__(self, folder: Path) -> None:
        env = {name: value for name, value in os.environ.items() if name != VARIABLE}
        argv = [sys.executable, "-P", "-m", "urteil.harness.runtimes.hosts.agent", str(folder)]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        self._numbers = count(1)
        self.folder = Path(self.call("run_folder"))

    @property
    def token(self) -> str:
        return self.folder.name

    def ask(self, operation: str, *arguments: Any) -> Response:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(encode(Request(next(self._numbers), operation, list(arguments))))
        self.process.stdin.flush()
        length = int.from_bytes(self.process.stdout.read(LENGTH_BYTES), "big")
        return msgspec.msgpack.decode(self.process.stdout.read(length), type=Response)

    def call(self, operation: str, *arguments: Any) -> Any:
        response = self.ask(operation, *arguments)
        assert not response.failure, response.failure
        return response.value

    def start(self, node: str = "b1") -> dict[str, Any]:
        status: dict[str, Any] = self.call("start", node, SLEEP, {}, archive({"file": b"content"}))
        return status

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(ENDED_S)


def archive(files: dict[str, bytes], folder: str = "b1") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()
    await_nothing_left(lab)


def await_nothing_left(lab: Lab) -> None:
    until(lambda: not holders(lab.token), "no process of the run", deadline_s=ENDED_S)
    until(lambda: not lab.folder.exists(), "no folder of the run", deadline_s=ENDED_S)


def test_node_in_its_folder_is_killed_and_restarted(lab: Lab) -> None:
    assert lab.start()["state"] == "running"
    assert (lab.folder / "nodes" / "b1" / "file").read_bytes() == b"content"
    until(lambda: lab.call("output", {"b1": 0}) == {"b1": b"up\n"})
    assert lab.call("output", {"b1": 3}) == {}
    assert lab.call("pause", "b1")["state"] == "paused"
    assert lab.call("resume", "b1")["state"] == "running"
    assert lab.call("kill", "b1")["exit_code"] == -signal.SIGKILL
    assert lab.start()["starts"] == 2


def test_load_of_the_host_is_reported_once(lab: Lab) -> None:
    rows = until(lambda: lab.call("loads"))
    assert {row["metric"] for row in rows} == {METRIC}
    (later, *_) = until(lambda: lab.call("loads"))
    assert later["at_ns"] > rows[-1]["at_ns"]


def test_exit_of_a_node_is_reported(lab: Lab) -> None:
    lab.call("start", "b1", ["sh", "-c", "exit 3"], {}, archive({}))
    (ended,) = until(lambda: lab.call("unexpected_ends"))
    assert (ended["node"], ended["exit_code"]) == ("b1", 3)


def test_folder_of_a_node_comes_back_as_an_archive(lab: Lab) -> None:
    lab.start()
    packed = lab.call("pack", "b1")
    content = io.BytesIO(lab.call("read", packed, 0))
    assert lab.call("read", packed, content.getbuffer().nbytes) == b""
    with tarfile.open(fileobj=content) as tar:
        assert "b1/file" in tar.getnames()


def test_files_of_a_dead_node_are_replaced(lab: Lab) -> None:
    lab.start()
    lab.call("kill", "b1")
    content = archive({"another": b"changed"})
    lab.call("write", "b1.tar.gz", 0, b"an earlier archive, which was longer" * 1000)
    for offset in range(0, len(content), 4096):
        lab.call("write", "b1.tar.gz", offset, content[offset : offset + 4096])
    lab.call("replace", "b1", "b1.tar.gz")
    folder = lab.folder / "nodes" / "b1"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"another": b"changed"}


def test_changed_file_of_a_running_node_is_sent(lab: Lab) -> None:
    lab.start()
    (first,) = lab.call("changes", "nodes/b1", {})
    name, version, _, content = first
    assert (name, content) == ("file", b"content")
    assert lab.call("changes", "nodes/b1", {name: version}) == []
    lab.call("replace_file", "b1", "file", "another")
    ((_, _, start, content),) = lab.call("changes", "nodes/b1", {name: version})
    assert (start, content) == (0, b"another")


def test_archive_never_leaves_the_folder_of_its_node(lab: Lab) -> None:
    response = lab.ask("start", "b1", SLEEP, {}, archive({"../../outside": b""}))
    assert "outside of its folder" in response.failure


def test_failures_are_sentences_of_the_lab(lab: Lab) -> None:
    assert lab.ask("kill", "b7").failure == "b7 was never started"
    missing = lab.ask("start", "b1", ["no-such-program"], {}, archive({}))
    assert "No such file or directory: 'no-such-program'" in missing.failure
    assert lab.call("run_folder")


def _claimed(lab: Lab) -> tuple[int, str, int, int]:
    """A block that the lab has claimed, in a network that no cluster chooses."""
    networks = range(HIGHEST_NETWORK + 1, 255)
    blocks = [(octet, f"127.{octet}.9.9", 31_000, 5) for octet in networks]
    return next(block for block in blocks if lab.call("claim", *block))


def test_block_of_ports_is_claimed_once(lab: Lab, tmp_path: Path) -> None:
    other = Lab(tmp_path)
    block = _claimed(lab)
    assert not other.call("claim", *block)
    other.end()
    await_nothing_left(other)
    assert lab.call("claim", *block), "a claim replaces the earlier one"
    failure = lab.ask("claim", block[0], "198.18.255.250", CLAIM_PORT, 2).failure
    assert "Cannot assign requested address" in failure


def test_nothing_is_left_when_the_channel_ends(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.start()
    lab.start("b2")
    until(lambda: len(holders(lab.token)) == 4, "two nodes with a child each")
    lab.call("pause", "b2")
    lab.end()
    await_nothing_left(lab)


def test_nothing_is_left_when_the_agent_is_killed(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.start()
    lab.process.kill()
    lab.process.wait(ENDED_S)
    await_nothing_left(lab)


def test_silent_channel_counts_as_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "SILENCE_S", 0.1)
    reading, writing = os.pipe()
    request = Request(1, "run_folder", [])
    os.write(writing, encode(request))
    assert list(agent_module.requests(reading)) == [request]
    os.close(writing)
    os.close(reading)
