"""Ctrl-C as a flag, for commands that must finish an exchange before they end."""

from __future__ import annotations

import signal
import time

STEP_S = 0.05


class Interrupts:
    """Notes SIGINT from its construction on, also in background jobs of a shell script, which
    ignore it."""

    def __init__(self) -> None:
        self.came = False
        signal.signal(signal.SIGINT, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.came = True

    def wait(self, end: float) -> None:
        """Wait until the moment `end` (time.monotonic) or a SIGINT."""
        while not self.came and (remaining_s := end - time.monotonic()) > 0:
            time.sleep(min(STEP_S, remaining_s))
