"""The client processes of a run: started by a spawn function, ended within deadlines."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import not_
from pathlib import Path
from typing import Protocol

import msgspec
import psutil

from urteil.chaos.waiting import until
from urteil.harness.clients.control_signals import blocked_signals
from urteil.harness.clients.kind import ClientKind
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.scenario import save
from urteil.harness.stack_dumps import DumpSource

CHILDREN_POLL_S = 0.05
STOPPED = psutil.STATUS_STOPPED


class Process(Protocol):
    """The operations of a process that the workload needs."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...
    def signal_all(self, number: int) -> bool:
        """Send a signal to the process and its children; 0 sends none. False if none is left."""
        ...

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it."""
        ...


class LocalProcess(subprocess.Popen[bytes]):
    """A process of this machine, in a session of its own."""

    def signal_all(self, number: int) -> bool:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def is_stopped(self) -> bool:
        try:
            return bool(psutil.Process(self.pid).status() == STOPPED)
        except psutil.NoSuchProcess:
            return False


class ClientPlace(Protocol):
    """Other machines, on which the lab's own clients run instead of this one."""

    def start(
        self, name: str, module: str, write_spec: Callable[[str], bytes], *, blocks_signals: bool
    ) -> Process:
        """Start a client. `write_spec` returns its SPEC.json for the path of its journal there.

        Journal and log grow in the run's folder, and are complete when `poll` has the exit code.
        """
        ...


Spawn = Callable[[Sequence[str], Path], Process]
"""Starts argv with its output appended to a log file."""


def spawn_process(argv: Sequence[str], log: Path) -> Process:
    """Start the process in a session of its own, so that Ctrl-C at the lab's terminal does not end
    it first.

    It inherits the lab's environment, including the reaper's mark.
    """
    with log.open("ab") as output:
        return LocalProcess(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(os.environ),
            start_new_session=True,
        )


class Clients:
    """The client processes of a run by name. None is started twice."""

    def __init__(self, run_dir: Path, spawn: Spawn, elsewhere: ClientPlace | None = None) -> None:
        """With `elsewhere`, the lab's own clients run there."""
        self._run_dir = run_dir
        self._spawn = spawn
        self._elsewhere = elsewhere
        self._processes: dict[str, Process] = {}
        self._stopped: set[str] = set()
        self._killed: set[str] = set()
        self._finite: set[str] = set()

    def prepare(self, name: str, kind: ClientKind) -> None:
        """Start a client that waits for its SPEC.json, so that `start` is quick later."""
        if name in self._processes or self._elsewhere is not None:
            return
        for folder in ("journal", "logs"):
            (self._run_dir / folder).mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", kind.module, str(self._spec_path(name))]
        with blocked_signals() if kind.handles_signals else contextlib.nullcontext():
            self.run(name, argv)

    def run(self, name: str, argv: Sequence[str], *, is_finite: bool = False) -> None:
        """Start a program as a client, with a log of its own. A finite one may end by itself with
        exit code 0."""
        if is_finite:
            self._finite.add(name)
        (self._run_dir / "logs").mkdir(parents=True, exist_ok=True)
        log = self._run_dir / "logs" / f"client-{name}.log"
        self._processes[name] = self._spawn(argv, log)

    def start(self, spec: ClientSpec, kind: ClientKind) -> None:
        """Write the client's SPEC.json beside its journal, and start the client unless it is
        prepared."""
        (self._run_dir / "journal").mkdir(parents=True, exist_ok=True)
        save(self._spec_path(spec.client), spec)
        if self._elsewhere is None:
            self.prepare(spec.client, kind)
        elif spec.client not in self._processes:
            self._processes[spec.client] = self._elsewhere.start(
                spec.client,
                kind.module,
                lambda journal: msgspec.json.encode(msgspec.structs.replace(spec, journal=journal)),
                blocks_signals=kind.handles_signals,
            )

    def discard(self, name: str) -> None:
        """End a prepared client that is not needed."""
        process = self._processes.pop(name, None)
        if process is not None and process.poll() is None:
            process.kill()
            process.wait(10.0)

    def _spec_path(self, name: str) -> Path:
        return self._run_dir / "journal" / f"{name}.spec.json"

    def state(self, name: str) -> tuple[int, int | None, bool]:
        """Process id, exit code (None while it runs), and whether a signal has stopped it."""
        process = self._processes[name]
        code = process.poll()
        return process.pid, code, code is None and process.is_stopped()

    def kill(self, name: str) -> bool:
        """SIGKILL. Returns when the process is gone; True if the signal ended it."""
        self.send_signal(name, signal.SIGKILL)
        by_us = self._processes[name].wait(10.0) == -signal.SIGKILL
        if by_us:
            self._killed.add(name)
        return by_us

    def send_signal(self, name: str, number: int) -> None:
        """Send a signal to a client and all its children: each client is a session of its own."""
        if name in self._processes:
            self._processes[name].signal_all(number)

    def dump_sources(self, names: Sequence[str]) -> list[DumpSource]:
        """The running clients of this machine, whose stacks the lab may request."""
        logs = self._run_dir / "logs"
        return [
            DumpSource(
                name=f"client-{name}",
                pid=self._processes[name].pid,
                output=partial((logs / f"client-{name}.log").read_text, errors="replace"),
            )
            for name in self.running_clients(names)
            if isinstance(self._processes[name], LocalProcess)
        ]

    @property
    def names(self) -> list[str]:
        return list(self._processes)

    def running_clients(self, names: Sequence[str]) -> list[str]:
        return [n for n in names if n in self._processes and self._processes[n].poll() is None]

    def terminate(self, names: Sequence[str], deadline_s: float) -> list[str]:
        """SIGTERM all, wait, SIGKILL those past the deadline. Returns the names of the
        killed ones."""
        for name in self.running_clients(names):
            self._stopped.add(name)
            self.send_signal(name, signal.SIGTERM)
        late = self.await_end(names, deadline_s)
        for name in names:
            self._end_children(name, deadline_s)
        return late

    def _end_children(self, name: str, deadline_s: float) -> None:
        """Wait for the children of a client to end; SIGKILL past the deadline."""
        until(
            lambda: self._has_children(name),
            not_,
            deadline_s=deadline_s,
            poll_s=CHILDREN_POLL_S,
        )
        self.send_signal(name, signal.SIGKILL)

    def _has_children(self, name: str) -> bool:
        return name in self._processes and self._processes[name].signal_all(0)

    def await_end(self, names: Sequence[str], deadline_s: float) -> list[str]:
        """Wait for clients that end by themselves; SIGKILL the late ones and return their names."""
        deadline = time.monotonic() + deadline_s
        killed = []
        for name in [n for n in names if n in self._processes]:
            try:
                self._processes[name].wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._processes[name].kill()
                self._processes[name].wait(10.0)
                killed.append(name)
        return killed

    def _ended_as_requested(self, name: str, code: int) -> bool:
        """Whether the exit code is that of a requested stop. A client may die of SIGTERM before it
        handles it, and a JVM always reports the signal in its exit code."""
        if name in self._stopped:
            return code in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
        return code == 0 and (name.startswith("final") or name in self._finite)

    def failures(self, tails: Mapping[str, str] | None = None) -> list[str]:
        """A sentence for each client that ended with an error or before it was stopped, with the
        end of its log where `tails` has it."""
        failures = []
        for name, process in list(self._processes.items()):
            code = process.poll()
            if code is None or name in self._killed or self._ended_as_requested(name, code):
                continue
            failures.append(
                f"client {name} ended with exit code {code} (logs/client-{name}.log)"
                f"{(tails or {}).get(name, '')}"
            )
        return failures

    def kill_all(self) -> None:
        running = [process for process in self._processes.values() if process.poll() is None]
        for name, process in self._processes.items():
            if process in running:
                self.send_signal(name, signal.SIGKILL)
        for process in running:
            process.wait(10.0)
