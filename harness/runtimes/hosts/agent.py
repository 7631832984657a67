"""The lab's process on a host: runs nodes on requests of the lab over its standard input.

    python -m urteil.harness.runtimes.hosts.agent FOLDER

It serves the requests of `messages` and answers on its standard output, which is the ssh channel.
All files of the run are below `FOLDER/runs/<token>`. The token is in the environment of every
process that it starts. When the channel ends, or carried no data for SILENCE_S, the agent ends; its
reaper kills every process with the token and removes the folder.
"""

from __future__ import annotations

import errno
import io
import os
import select
import shutil
import socket
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from urteil.chaos.loopback import CLAIM_INDEX, CLAIM_PORT
from urteil.chaos.observations import LabFailure, NodeStatus
from urteil.harness import host_load
from urteil.harness.clients.control_signals import blocked_signals
from urteil.harness.reaper import start_reaper, sweep_folder
from urteil.harness.runtimes.false_clocks import replace_file
from urteil.harness.runtimes.folder_archives import extract
from urteil.harness.runtimes.hosts.followed_folders import Change, Version, await_changes
from urteil.harness.runtimes.hosts.host_clock import read_clocks
from urteil.harness.runtimes.hosts.messages import (
    CHUNK_BYTES,
    LENGTH_BYTES,
    Request,
    Response,
    encode,
)
from urteil.harness.runtimes.hosts.packet_tables import PacketRule, PacketTables
from urteil.harness.runtimes.node_processes import NodeProcesses
from urteil.harness.runtimes.runtime import NodeSpec

SILENCE_S = 15.0
"""The lab requests output every second; a lab that lost its network for 10 s may come back."""
AT_ONCE = 16
QUICK = 1
"""gzip's level for evidence: the unused ends of index files are zeros."""


class Agent:
    """The operations. Their arguments and results are values of MessagePack."""

    def __init__(self, folder: Path) -> None:
        self._token = start_reaper()
        self._run = folder.resolve() / "runs" / self._token
        sweep_folder(self._run)
        (self._run / "bin").mkdir(parents=True)
        (self._run / "parts").symlink_to(folder.resolve() / "parts")
        (self._run / "bin" / "python").symlink_to(sys.executable)
        self._nodes = NodeProcesses(self._run / "logs", self._token)
        self._packets = PacketTables(self._token)
        self._claimed: list[socket.socket] = []
        self._loads: list[host_load.Row] = []
        watch = (self._loads, threading.Event())
        threading.Thread(target=host_load.watch_load, args=watch, daemon=True).start()
        nodes = self._nodes
        self._operations: dict[str, Callable[..., Any]] = {
            "run_folder": self.run_folder,
            "clocks": read_clocks,
            "loads": self.loads,
            "claim": self.claim,
            "link": self.link,
            "start": self.start,
            "start_client": self.start_client,
            "signal": self.signal,
            "lines": self.lines,
            "pack": self.pack,
            "read": self.read,
            "changes": self.changes,
            "write": self.write,
            "replace_file": self.replace_file,
            "replace": self.replace,
            "output": self.output,
            "filter_packets": self.filter_packets,
            "packet_counts": self._packets.counts,
            "restore_packets": self._packets.remove,
            "status": nodes.status,
            "kill": nodes.kill,
            "stop": self.stop,
            "pause": nodes.pause,
            "resume": nodes.resume,
            "allow_exit": self.allow_exit,
            "throttle_cpu": nodes.throttle_cpu,
            "restore_cpu": nodes.restore_cpu,
            "cpu_throttling": nodes.cpu_throttling,
            "unexpected_ends": nodes.unexpected_ends,
        }

    def answer(self, request: Request) -> Response:
        try:
            value = self._operations[request.operation](*request.arguments)
        except Exception as failure:
            text = str(failure) if isinstance(failure, LabFailure) else _describe(failure)
            return Response(request.number, failure=text)
        return Response(request.number, value=value)

    def loads(self) -> list[host_load.Row]:
        """The host's load since the last call: rows of `samples`, with the host's clock."""
        rows = self._loads[:]
        del self._loads[: len(rows)]  # the thread may append meanwhile
        return rows

    def run_folder(self) -> str:
        return str(self._run)

    def claim(self, octet: int, address: str, first_port: int, count: int) -> bool:
        """Reserve a loopback network and ports of the host's address until the agent ends. The
        first port is held, the others must be free now. False if something is in use. An earlier
        claim ends."""
        self._release()
        held = [(f"127.{octet}.0.{CLAIM_INDEX}", CLAIM_PORT), (address, first_port)]
        free = [(address, first_port + at) for at in range(1, count)]
        for place in (*held, *free):
            bound = socket.socket()
            try:
                bound.bind(place)
            except OSError as error:
                bound.close()
                if error.errno != errno.EADDRINUSE:
                    raise
                self._release()
                return False
            if place in held:
                self._claimed.append(bound)
            else:
                bound.close()
        return True

    def _release(self) -> None:
        while self._claimed:
            self._claimed.pop().close()

    def link(self, name: str, target: str) -> None:
        """Link a program of the run as `bin/NAME`."""
        (self._run / "bin" / name).symlink_to(target)

    def start(self, node: str, argv: list[str], env: dict[str, str], archive: bytes) -> NodeStatus:
        """Start a node in its folder, with the files of the archive."""
        folder = self._node_folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        extract(io.BytesIO(archive), folder)
        return self._nodes.start(node, NodeSpec(argv=argv, env=env, cwd=folder))

    def start_client(
        self, node: str, argv: list[str], env: dict[str, str], archive: bytes, blocks_signals: bool
    ) -> NodeStatus:
        """As `start`, for a client of the workload."""
        with blocked_signals() if blocks_signals else nullcontext():
            return self.start(node, argv, env, archive)

    def signal(self, node: str, number: int) -> bool:
        """Signal the process group of a node. False if no process is left in it."""
        pid = self._nodes.status(node).pid
        try:
            if pid is not None:
                os.killpg(pid, number)
        except ProcessLookupError:
            return False
        return pid is not None

    def stop(self, node: str, deadline_s: float) -> NodeStatus:
        return self._nodes.stop(node, deadline_s=deadline_s)

    def allow_exit(self, node: str, allowed: bool) -> None:
        self._nodes.allow_exit(node, allowed=allowed)

    def output(self, offsets: dict[str, int]) -> dict[str, bytes]:
        """The output of nodes from their offsets on, at most a chunk each. The request also shows
        that the lab lives."""
        news = {}
        for node, offset in offsets.items():
            content = self.read(f"logs/{node}.log", offset)
            if content:
                news[node] = content
        return news

    def filter_packets(self, owner: str, rules: list[Any]) -> None:
        self._packets.add(owner, msgspec.convert(rules, list[PacketRule]))

    def pack(self, node: str) -> str:
        """Write the folder of a dead node to a file, and return its path in the run's folder."""
        with tarfile.open(self._run / f"{node}.tar.gz", "w:gz", compresslevel=QUICK) as tar:
            tar.add(self._node_folder(node), arcname=node)
        return f"{node}.tar.gz"

    def read(self, path: str, offset: int) -> bytes:
        """A chunk of a file of the run. Empty at its end, and while the file does not exist."""
        try:
            with (self._run / path).open("rb") as file:
                file.seek(offset)
                return file.read(CHUNK_BYTES)
        except FileNotFoundError:
            return b""

    def lines(self, path: str, offset: int) -> bytes:
        """Complete lines of a growing `LineFile` of the run, at most a chunk."""
        content = self.read(path, offset).partition(b"\0")[0]
        return content[: content.rfind(b"\n") + 1]

    def changes(self, path: str, known: dict[str, Any]) -> list[Change]:
        """The changes in a folder of the run since these versions, as `await_changes`."""
        return await_changes(self._run / path, msgspec.convert(known, dict[str, Version]))

    def write(self, path: str, offset: int, content: bytes) -> None:
        """Write a chunk of a file of the run. The first chunk replaces the file."""
        with (self._run / path).open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(content)

    def replace_file(self, node: str, name: str, text: str) -> None:
        """Replace a file directly in the folder of a node, which may run."""
        replace_file(self._node_folder(node) / name, text)

    def replace(self, node: str, path: str) -> None:
        """Replace the files of a dead node by those of an archive."""
        folder = self._node_folder(node)
        shutil.rmtree(folder)
        folder.mkdir()
        with (self._run / path).open("rb") as file:
            extract(file, folder)

    def _node_folder(self, node: str) -> Path:
        return self._run / "nodes" / node


def _describe(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}"


def requests(channel: int) -> Iterator[Request]:
    """The requests until the channel ends or is silent for too long."""
    decoder = msgspec.msgpack.Decoder(Request)
    received = bytearray()
    while select.select([channel], [], [], SILENCE_S)[0]:
        chunk = os.read(channel, CHUNK_BYTES)
        if not chunk:
            return
        received += chunk
        while len(received) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(received[:LENGTH_BYTES], "big")
            if len(received) < end:
                break
            yield decoder.decode(bytes(received[LENGTH_BYTES:end]))
            del received[:end]


def serve(agent: Agent, channel: int, answers: BinaryIO) -> None:
    """Answer requests, several at once. The lab keeps its order by waiting for answers."""
    lock = threading.Lock()

    def answer(request: Request) -> None:
        content = encode(agent.answer(request))
        with lock:
            answers.write(content)
            answers.flush()

    pool = ThreadPoolExecutor(AT_ONCE)
    for request in requests(channel):
        pool.submit(answer, request)


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray line is not an answer
    serve(Agent(Path(sys.argv[1])), sys.stdin.fileno(), answers)
    os._exit(0)  # the reaper ends the nodes, and threads of operations may still wait for some


if __name__ == "__main__":
    main()
