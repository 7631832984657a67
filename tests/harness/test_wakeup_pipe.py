"""A signal handler wakes a waiting thread at any point of its wait."""

from __future__ import annotations

import subprocess
import sys

WAKING = """
import signal
from urteil.harness.clients.stop import stop_on_signals

stop = stop_on_signals()
signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGTERM))
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
for _ in range(20_000):
    stop.wait(0.00001)
signal.setitimer(signal.ITIMER_REAL, 0)
assert stop.is_set()
"""


def test_signal_at_any_moment_wakes_the_waiting_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAKING], timeout=240, stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
