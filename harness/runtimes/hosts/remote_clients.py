"""Clients of the workload on hosts: agents start them, and the lab fetches their journals and logs.

Implements `urteil.harness.clients.processes.ClientPlace`.
"""

from __future__ import annotations

import io
import signal
import subprocess
import tarfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from urteil.chaos.observations import LabFailure, NodeState, NodeStatus
from urteil.chaos.waiting import until
from urteil.harness.runtimes.hosts.connection import HostConnection
from urteil.harness.runtimes.hosts.journal_times import JournalTimes, Translate

PREFIX = "client-"
JOURNAL, SPEC = "journal.jsonl", "spec.json"
LOST = 255
"""The exit code of a client whose host is lost."""
POLL_S = 0.02
OPERATIONS = {signal.SIGKILL: "kill", signal.SIGSTOP: "pause", signal.SIGCONT: "resume"}
"""Signals after which the agent knows another state of the process."""


@dataclass(slots=True)
class _Copied:
    """A growing file on the host, and its local copy. `operation` reads the complete part."""

    operation: str
    source: str
    copy: Path
    translate: Translate
    offset: int = 0

    def fetch(self, connection: HostConnection) -> None:
        while news := connection.call(self.operation, self.source, self.offset):
            with self.copy.open("ab") as file:
                file.write(self.translate(news))
            self.offset += len(news)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHost:
    """A host for clients. `times` is None if it has the lab's clock."""

    connection: HostConnection
    python: str
    packages: str
    times: JournalTimes | None


class RemoteClient:
    """A client on a host. Implements `urteil.harness.clients.processes.Process`."""

    def __init__(self, node: str, host: ClientHost, files: Sequence[_Copied]) -> None:
        self._node = node
        self._host = host
        self._files = files
        self._code: int | None = None
        self._lock = threading.Lock()
        self.failure = ""
        self.pid = self._status().pid or 0

    def fetch(self) -> None:
        """Fetch what the client wrote since the last call."""
        with self._lock:
            for file in self._files:
                file.fetch(self._host.connection)

    def poll(self) -> int | None:
        """The exit code; its journal is completely fetched then."""
        if self._code is None:
            try:
                status = self._status()
                if status.state is NodeState.DEAD:
                    self.fetch()
                    self._code = status.exit_code
            except LabFailure as failure:
                self._code, self.failure = LOST, str(failure)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """As `subprocess.Popen.wait`."""
        deadline_s = float("inf") if timeout is None else timeout
        ended = until(lambda: self.poll() is not None, deadline_s=deadline_s, poll_s=POLL_S)
        if not ended or self._code is None:
            raise subprocess.TimeoutExpired(self._node, deadline_s)
        return self._code

    def kill(self) -> None:
        self.signal_all(signal.SIGKILL)

    def signal_all(self, number: int) -> bool:
        if self.failure:
            return False
        call = self._host.connection.call
        operation = OPERATIONS.get(signal.Signals(number)) if number else None
        if operation is None:
            return bool(call("signal", self._node, number))
        call(operation, self._node)
        return True

    def is_stopped(self) -> bool:
        return self._code is None and self._status().state is NodeState.PAUSED

    def _status(self) -> NodeStatus:
        return msgspec.convert(self._host.connection.call("status", self._node), NodeStatus)


class RemoteClients:
    """The clients on the client hosts, distributed in turn."""

    def __init__(self, hosts: Sequence[ClientHost], run_dir: Path) -> None:
        self._hosts = hosts
        self._run_dir = run_dir
        self._clients: dict[str, RemoteClient] = {}

    def start(
        self, name: str, module: str, write_spec: Callable[[str], bytes], *, blocks_signals: bool
    ) -> RemoteClient:
        node = f"{PREFIX}{name}"
        host = self._hosts[len(self._clients) % len(self._hosts)]
        host.connection.call(
            "start_client",
            node,
            [host.python, "-P", "-m", module, SPEC],
            {"PYTHONPATH": host.packages},
            _archive(node, {SPEC: write_spec(JOURNAL)}),
            blocks_signals,
        )
        journal = self._run_dir / "journal" / f"{name}.jsonl"
        log = self._run_dir / "logs" / f"{node}.log"
        for path in (journal, log):
            path.parent.mkdir(exist_ok=True)
        times = host.times.translate if host.times else bytes
        files = [
            _Copied("lines", f"nodes/{node}/{JOURNAL}", journal, times),
            _Copied("read", f"logs/{node}.log", log, bytes),
        ]
        self._clients[name] = RemoteClient(node, host, files)
        return self._clients[name]

    def fetch(self, connection: HostConnection) -> None:
        """Fetch what the clients of a host wrote."""
        for client in list(self._clients.values()):
            if client._host.connection is connection:
                client.fetch()

    def failures(self) -> list[str]:
        """The reasons for which journals of clients were not fetched completely."""
        return [
            f"{PREFIX}{name} did not come back: {client.failure}"
            for name, client in self._clients.items()
            if client.failure
        ]


def _archive(folder: str, files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
