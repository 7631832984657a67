"""A pipe by which a signal handler wakes a waiting thread.

A `threading.Event` cannot do this: the interrupted thread may hold the lock of the event in the
middle of its own wait, and the handler would then wait for that lock for ever.
"""

from __future__ import annotations

import os
import select
import signal


class WakeupPipe:
    """Once woken, stays woken: every later `wait` returns at once."""

    def __init__(self) -> None:
        self.is_woken = False
        self._read_end, self._write_end = os.pipe()

    def wake_on(self, *signals: signal.Signals) -> None:
        """Wake at each of these signals, also where a shell's background job ignores them."""
        for number in signals:
            signal.signal(number, lambda *_: self.wake())

    def wake(self) -> None:
        """May be called from a signal handler, and repeatedly."""
        if not self.is_woken:
            self.is_woken = True
            os.write(self._write_end, b"!")

    def wait(self, seconds: float | None = None) -> None:
        """Return when woken, at the latest after `seconds`."""
        select.select([self._read_end], [], [], seconds)
