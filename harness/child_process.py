"""Waits for child processes."""

from __future__ import annotations

import subprocess
from typing import Any


def await_exit(process: subprocess.Popen[Any], *, deadline_s: float) -> int:
    """Return the exit code of a process that is about to end. After the deadline it is killed."""
    try:
        return process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
