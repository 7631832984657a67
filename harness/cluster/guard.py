"""The guard of an external cluster: a process that heals the lab's faults when the lab ends.

Before each act, the lab reports to the guard over a pipe: the faults that it holds, with their
expiry, and its acts on nodes. If the pipe ends before the lab signed off, or a fault expires, the
guard heals every link of the file and every node that the lab paused or ended. It is a process
outside the lab's group and without its token, so that neither a signal nor the reaper ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

from urteil.chaos.observations import LabFailure
from urteil.harness.reaper import VARIABLE

HELD_TOO_LONG = "held too long"
"""The reason in guard.log for healing while the lab lives."""


class Guard:
    """The lab's end of the pipe. Implements `harness.cluster.controls.Holds`."""

    def __init__(self, file: Path, run_dir: Path) -> None:
        self._file = file.resolve()
        self._log = run_dir / "guard.log"
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        env = {key: value for key, value in os.environ.items() if key != VARIABLE}
        self._log.parent.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-P", "-m", "urteil.harness.cluster.guard_process", str(self._file)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=env,
            )

    def hold(self, fault: str, *, expiry_s: float) -> int:
        number = next(self._numbers)
        self._send({"hold": number, "fault": fault, "expiry_s": expiry_s})
        return number

    def release(self, hold: int) -> None:
        self._send({"release": hold})

    def announce(self, act: str, node: str) -> None:
        """Announce that a node will be ended, paused or started.

        Starting is healing, which must not fail because the guard died.
        """
        try:
            self._send({"act": act, "node": node})
        except LabFailure:
            if act != "start":
                raise

    def close(self) -> None:
        """Sign off: nothing remains to heal. Repeatable."""
        with contextlib.suppress(LabFailure):
            self._send({"bye": True})
        self.leave()

    def has_healed(self) -> bool:
        """Whether the guard healed faults that the lab considered active."""
        return self._log.exists() and HELD_TOO_LONG in self._log.read_text(errors="replace")

    def leave(self) -> None:
        """Close the pipe without signing off, so that the guard retries failed healing."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _send(self, message: dict[str, object]) -> None:
        with self._lock:
            if self._process is None or self._process.stdin is None:
                return
            try:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise LabFailure(f"the guard beside the cluster died: {error}") from error
