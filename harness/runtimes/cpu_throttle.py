"""Limits a process's processor time without privileges: stops it for most of every period."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

PERIOD_S = 0.1


class CpuThrottle:
    """Limits a process to `share` of every PERIOD_S, until `end` restores it. `signal_it` signals
    its process group; `is_stopped` returns whether the system shows it as stopped."""

    def __init__(
        self, share: float, signal_it: Callable[[int], None], is_stopped: Callable[[], bool]
    ) -> None:
        self.share = share
        self.periods = self.throttled = 0
        self._signal = signal_it
        self._is_stopped = is_stopped
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="cpu throttle")
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                began = time.monotonic()
                self._signal(signal.SIGSTOP)
                self._ended.wait((1 - self.share) * PERIOD_S)
                self.throttled += self._is_stopped()
                self.periods += 1
                self._signal(signal.SIGCONT)
                self._ended.wait(max(0.0, began + PERIOD_S - time.monotonic()))
        finally:
            self._signal(signal.SIGCONT)
