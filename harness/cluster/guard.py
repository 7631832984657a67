"""A guard beside a cluster that somebody else keeps: no fault of ours outlives the lab there.

The lab tells it over a pipe, before it acts, which faults it holds until when and what it does to
nodes. When the pipe ends without a goodbye, or a fault is held too long, the guard heals: every
link of the file, every node that we paused or ended. It is a process of its own outside the lab's
group and without its token, so that neither a signal nor the reaper ends it.
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
"""Why it heals while the lab lives, in guard.log."""


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
        self._tell({"hold": number, "fault": fault, "expiry_s": expiry_s})
        return number

    def release(self, hold: int) -> None:
        self._tell({"release": hold})

    def about_to(self, act: str, node: str) -> None:
        """Say that a node is about to be ended, paused or started; the last is healing, which a
        guard that died must not hinder."""
        try:
            self._tell({"act": act, "node": node})
        except LabFailure:
            if act != "start":
                raise

    def close(self) -> None:
        """Say goodbye: nothing is left to heal; repeatable."""
        with contextlib.suppress(LabFailure):
            self._tell({"bye": True})
        self.leave()

    def has_healed(self) -> bool:
        """Whether faults ended by it while the lab took them to act."""
        return self._log.exists() and HELD_TOO_LONG in self._log.read_text(errors="replace")

    def leave(self) -> None:
        """Go without a goodbye: what could not be undone is tried again."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _tell(self, message: dict[str, object]) -> None:
        with self._lock:
            if self._process is None or self._process.stdin is None:
                return
            try:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise LabFailure(f"the guard beside the cluster died: {error}") from error
