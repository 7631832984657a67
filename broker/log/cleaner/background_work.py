"""Work in slices on a background thread; it can be cancelled between two steps."""

from __future__ import annotations

from collections.abc import Callable, Generator

Steps = Generator[int, None, None]
"""Yields the bytes read or written since the last step."""


class BackgroundWork:
    """A generator of steps that `run` advances by one slice, on one thread at a time.

    A slice ends after `budget_bytes`, with the last step, when `cancelled`, or with an `error`. The
    event loop reads the other attributes.
    """

    __slots__ = ("_steps", "budget_bytes", "cancelled", "done", "error", "running", "used_bytes")

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.budget_bytes = float("inf")
        self.used_bytes = 0
        self.cancelled = self.done = self.running = False
        self.error: Exception | None = None

    def start(self, background: Callable[[Callable[[], None]], object], budget: float) -> None:
        """Start a slice on `background`."""
        self.budget_bytes, self.used_bytes, self.running = budget, 0, True
        background(self.run)

    def run(self) -> None:
        """Run one slice."""
        try:
            for size in self._steps:
                self.used_bytes += size
                if self.cancelled or self.used_bytes >= self.budget_bytes:
                    break
            else:
                self.done = True
        except Exception as error:
            self.error = error
        finally:
            self.running = False

    def close(self) -> None:
        """Close the files that the steps hold open; no slice may run."""
        self._steps.close()
