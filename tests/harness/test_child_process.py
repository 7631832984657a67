"""The end of a child process is awaited with a bound."""

from __future__ import annotations

import signal
import subprocess

import pytest

from urteil.harness.child_process import await_exit


@pytest.mark.parametrize(
    ("script", "deadline_s", "code"),
    [("exit 3", 60.0, 3), ("exec sleep 60", 0.1, -signal.SIGKILL)],
)
def test_process_is_killed_only_after_the_deadline(
    script: str, deadline_s: float, code: int
) -> None:
    assert await_exit(subprocess.Popen(["sh", "-c", script]), deadline_s=deadline_s) == code
