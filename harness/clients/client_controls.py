"""The operations of chaos on the clients of a run: implements `chaos.controls.ClientControls`.

A client's next session is a client of its own, `p1.2` after `p1`, with its own records and journal.
Kills are written to `clients.jsonl`, whose rows become `admin_ops`, so that the evidence shows
which journals were cut on purpose.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from urteil.chaos.observations import LabFailure, NodeState, NodeStatus
from urteil.chaos.waiting import until
from urteil.harness.clients.applications.running import RunningApplication
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.processes import Clients
from urteil.harness.clients.spec import base_name, client_number
from urteil.harness.evidence.acts import KILL
from urteil.harness.evidence.journal import CLIENT_ACTS
from urteil.harness.evidence.line_file import read_lines, written_bytes

ASSIGNED_ENTRY = b'["assigned",'
ASSIGNED_EVENT = b',"assigned",'
STATE_DEADLINE_S = 10.0
POLL_S = 0.02
APP = "app"
"""The client kind of all processes of an application."""

Start = Callable[[str, str, int], None]
"""Starts a client: kind, name, number of the session."""


class WorkloadClients:
    """The clients that a workload started. Thread-safe."""

    def __init__(
        self,
        run_dir: Path,
        clients: Clients,
        start: Start,
        application: RunningApplication | None = None,
    ) -> None:
        self._run_dir = run_dir
        self._application = application
        self._clients = clients
        self._start = start
        self._kinds: dict[str, str] = {}
        self._sessions: dict[str, int] = {}
        self._successors: dict[str, str] = {}
        self._lock = threading.RLock()

    def register(self, name: str, kind: str) -> None:
        """Register a started client."""
        with self._lock:
            self._kinds[name] = kind
            self._sessions.setdefault(base_name(name), 1)

    def names_of_kind(self, kind: str) -> list[str]:
        """The names of all clients of a kind that were ever started."""
        with self._lock:
            return [name for name, known in self._kinds.items() if known == kind]

    def names(self, kind: str) -> Sequence[str]:
        return self._clients.running_clients(self.names_of_kind(kind))

    def names_of_role(self, role: str) -> Sequence[str]:
        if self._application is None:
            return []
        process = self._application.application.process
        return [name for name in self.names(APP) if process(name).role == role]

    def application_leader(self) -> str | None:
        return self._application.leader(self.names(APP)) if self._application else None

    def empty_stores(self, name: str) -> Sequence[str]:
        if self._application is None or name not in self.names_of_kind(APP):
            raise LabFailure(f"{name} is not a process of an application")
        removed = self._application.empty_stores(name)
        return [str(path.relative_to(self._run_dir)) for path in removed]

    def operate_application(self, act: str) -> str:
        if self._application is None:
            raise LabFailure("the run has no application")
        began_ns = time.monotonic_ns()
        confirmation = self._application.operate(act)
        self.record_acts(
            [
                {
                    "invoke_ns": began_ns,
                    "complete_ns": time.monotonic_ns(),
                    "outcome": "ok",
                    "act": "operate",
                    "subject": act,
                }
            ]
        )
        return confirmation

    def status(self, name: str) -> NodeStatus:
        pid, code, stopped = self._clients.state(name)
        state = NodeState.DEAD if code is not None else NodeState.RUNNING
        if stopped:
            state = NodeState.PAUSED
        return NodeStatus(node=name, state=state, pid=pid, exit_code=code)

    def kill(self, name: str) -> NodeStatus:
        began_ns = time.monotonic_ns()
        if not self._clients.kill(name):
            return self.status(name)
        act = {
            "invoke_ns": began_ns,
            "complete_ns": time.monotonic_ns(),
            "outcome": "ok",
            "act": KILL,
            "subject": name,
        }
        self.record_acts([act])
        return self.status(name)

    def record_acts(self, acts: Iterable[Mapping[str, Any]]) -> None:
        """Record acts on clients."""
        with self._lock, (self._run_dir / CLIENT_ACTS).open("a") as file:
            file.writelines(json.dumps(act) + "\n" for act in acts)

    def start_next_session(self, name: str) -> str:
        with self._lock:
            if name not in self._successors:
                self._successors[name] = self._start_session(self._kinds[name], base_name(name))
            return self._successors[name]

    def _start_session(self, kind: str, base: str) -> str:
        self._sessions[base] = session = self._sessions.get(base, 0) + 1
        name = base if session == 1 else f"{base}.{session}"
        self._start(kind, name, session)
        self.register(name, kind)
        return name

    def pause(self, name: str) -> NodeStatus:
        return self._send_and_await(name, signal.SIGSTOP, NodeState.PAUSED)

    def resume(self, name: str) -> NodeStatus:
        return self._send_and_await(name, signal.SIGCONT, NodeState.RUNNING)

    def _send_and_await(self, name: str, number: signal.Signals, state: NodeState) -> NodeStatus:
        self._clients.send_signal(name, number)
        final = (state, NodeState.DEAD)
        status = until(
            lambda: self.status(name),
            lambda status: status.state in final,
            deadline_s=STATE_DEADLINE_S,
            poll_s=POLL_S,
        )
        if status.state not in final:
            raise LabFailure(f"client {name} did not become {state.value}")
        return status

    def pause_polling(self, name: str) -> None:
        self._clients.send_signal(name, signal.SIGUSR1)

    def resume_polling(self, name: str) -> None:
        self._clients.send_signal(name, signal.SIGUSR2)

    def join(self) -> str:
        with self._lock:
            kind = client_kinds()["group"]
            numbers = [client_number(name) for name in self.names_of_kind(kind.name)]
            number = max(numbers, default=0) + 1
            return self._start_session(kind.name, f"{kind.prefix}{number}")

    def leave(self, name: str, *, deadline_s: float = 10.0) -> None:
        if self._clients.terminate([name], deadline_s):
            raise LabFailure(f"group member {name} did not leave in {deadline_s:g} s")

    def journal_bytes(self, name: str) -> int:
        path = self._journal(name)
        return written_bytes(path) if path.exists() else 0

    def assignments(self, name: str) -> int:
        path = self._journal(name)
        lines = read_lines(path) if path.exists() else ()
        return sum(line.startswith(ASSIGNED_ENTRY) and ASSIGNED_EVENT in line for line in lines)

    def _journal(self, name: str) -> Path:
        return self._run_dir / "journal" / f"{name}.jsonl"
