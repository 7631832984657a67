"""Steps that a fault repeats from its own thread until it is healed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from random import Random

STOP_DEADLINE_S = 90.0


class RecurringSteps:
    """Runs one step after another, each after a random pause.

    A failing step ends the thread; `stop` raises the failure.
    """

    def __init__(
        self,
        steps: Iterator[Callable[[], object]],
        random: Random,
        lowest_s: float,
        highest_s: float,
    ) -> None:
        self.done = 0
        self._steps = steps
        self._pauses = (random, lowest_s, highest_s)
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="recurring fault")
        self._thread.start()

    def stop(self) -> None:
        """Return when the current step has ended. Raises the failure of a step. Repeatable."""
        self._stop.set()
        self._thread.join(STOP_DEADLINE_S)
        if self._thread.is_alive():
            raise TimeoutError("a step of a recurring fault did not end in time")
        if (failure := self._failure) is not None:
            self._failure = None
            raise failure

    def _run(self) -> None:
        random, lowest_s, highest_s = self._pauses
        try:
            for step in self._steps:
                if self._stop.wait(random.uniform(lowest_s, highest_s)):
                    return
                step()
                self.done += 1
        except Exception as failure:
            self._failure = failure


def check_range(lowest_ms: float, highest_ms: float) -> None:
    """ValueError for a range of pauses that ends before it begins."""
    if lowest_ms > highest_ms:
        raise ValueError(f"lowest_ms={lowest_ms:g} is above highest_ms={highest_ms:g}")
