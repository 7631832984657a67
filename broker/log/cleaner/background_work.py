"""Work in slices on a background thread; it can be cancelled between two steps."""

from __future__ import annotations

from collections.abc import Callable, Generator

Steps = Generator[int, None, None]
"""Yields the bytes that it read or wrote since the last step."""


class BackgroundWork:
    """Driven by whoever runs `run`, one at a time; its other attributes are the loop's to read.

    A slice ends after `budget_bytes`, with the last step, when `cancelled`, or with an `error`.
    """

    __slots__ = ("_steps", "budget_bytes", "cancelled", "done", "error", "running", "used_bytes")

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.budget_bytes = float("inf")
        self.used_bytes = 0
        self.cancelled = self.done = self.running = False
        self.error: Exception | None = None

    def start(self, background: Callable[[Callable[[], None]], object], budget: float) -> None:
        """Hand a slice over to `background`."""
        self.budget_bytes, self.used_bytes, self.running = budget, 0, True
        background(self.run)

    def run(self) -> None:
        """One slice."""
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
        """Let go of what the steps hold open, once no slice runs."""
        self._steps.close()
