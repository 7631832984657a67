"""Client processes of one run: started by a spawn function, ended within deadlines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from urteil.harness.scenario import save
from urteil.harness.workload.spec import ClientSpec

MODULES = {
    "producer": "urteil.harness.workload.producer",
    "consumer": "urteil.harness.workload.consumer",
    "group": "urteil.harness.workload.group_consumer",
    "raw": "urteil.harness.workload.raw",
    "final": "urteil.harness.workload.final_reader",
}


class Process(Protocol):
    """What the workload needs of a process; `subprocess.Popen` has it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


Spawn = Callable[[Sequence[str], Path], Process]
"""Starts argv with its output appended to a log file."""


def spawn_process(argv: Sequence[str], log: Path) -> Process:
    """A session of its own, so that a Ctrl-C on the lab's terminal does not end the client first.

    It inherits the lab's environment and with it the reaper's mark.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(os.environ),
            start_new_session=True,
        )


class Clients:
    """The client processes of a run by name; none is started twice."""

    def __init__(self, run_dir: Path, spawn: Spawn) -> None:
        self._run_dir = run_dir
        self._spawn = spawn
        self._processes: dict[str, Process] = {}
        self._ended: set[str] = set()

    def prepare(self, name: str, kind: str) -> None:
        """Start a client that waits for what to do, so that `start` costs no start any more."""
        if name in self._processes:
            return
        for folder in ("journal", "logs"):
            (self._run_dir / folder).mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", MODULES[kind], str(self._spec_path(name))]
        log = self._run_dir / "logs" / f"client-{name}.log"
        self._processes[name] = self._spawn(argv, log)

    def start(self, spec: ClientSpec) -> None:
        """Write the client's SPEC.json beside its journal, and start it if it is not prepared."""
        (self._run_dir / "journal").mkdir(parents=True, exist_ok=True)
        save(self._spec_path(spec.client), spec)
        self.prepare(spec.client, spec.kind)

    def discard(self, name: str) -> None:
        """End a client that was prepared and is not needed."""
        process = self._processes.pop(name, None)
        if process is not None and process.poll() is None:
            process.kill()
            process.wait(10.0)

    def _spec_path(self, name: str) -> Path:
        return self._run_dir / "journal" / f"{name}.spec.json"

    def running(self, names: Sequence[str]) -> list[str]:
        return [n for n in names if n in self._processes and self._processes[n].poll() is None]

    def terminate(self, names: Sequence[str], deadline_s: float) -> list[str]:
        """SIGTERM all, wait, SIGKILL those past the deadline; the names of the killed."""
        for name in self.running(names):
            self._ended.add(name)
            self._processes[name].terminate()
        return self.await_end(names, deadline_s)

    def await_end(self, names: Sequence[str], deadline_s: float) -> list[str]:
        """Wait for clients that end by themselves; SIGKILL the late and return their names."""
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

    def failures(self) -> list[str]:
        """A sentence for every client that ended with an error or before it was asked to."""
        found = []
        for name, process in self._processes.items():
            code = process.poll()
            if code is None or (code == 0 and (name in self._ended or name.startswith("final"))):
                continue
            found.append(f"client {name} ended with exit code {code} (logs/client-{name}.log)")
        return found

    def kill_all(self) -> None:
        left = [process for process in self._processes.values() if process.poll() is None]
        for process in left:
            process.kill()
        for process in left:
            process.wait(10.0)
