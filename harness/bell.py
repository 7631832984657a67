"""What a signal handler may ring and a thread may wait for."""

from __future__ import annotations

import os
import select


class Bell:
    """Rung once and for all. Not a threading.Event: the thread that a handler interrupts may hold
    the lock of one, in the middle of its wait, and would then wait for itself for ever."""

    def __init__(self) -> None:
        self.rung = False
        self._ear, self._rope = os.pipe()

    def ring(self) -> None:
        """From anywhere, signal handlers too; again is no more than once."""
        if not self.rung:
            self.rung = True
            os.write(self._rope, b"!")

    def wait(self, seconds: float | None = None) -> None:
        """Return after `seconds`, or as soon as it was rung."""
        select.select([self._ear], [], [], seconds)
