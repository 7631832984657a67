"""How much the cleaner may read and write a second (`log.cleaner.io.max.bytes.per.second`)."""

from __future__ import annotations

_SLICE_MS = 300


class IoThrottle:
    """Tells how large the next slice of work may be, and when the one after it may begin.

    Without a limit slices have no end. All cleanings together share the rate.
    """

    __slots__ = ("_due_ms", "_spent_ms", "bytes_per_second")

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._due_ms = 0.0
        self._spent_ms = 0

    def budget(self, shares: int) -> float:
        """The bytes of one slice where so many cleanings go on."""
        return max(self.bytes_per_second * _SLICE_MS / 1000 / max(shares, 1), 1)

    def spent(self, size: int, now_ms: int) -> None:
        """A slice that ends now took so many bytes."""
        if size:
            wait_ms = size * 1000 / self.bytes_per_second
            self._due_ms = max(self._due_ms if now_ms >= self._spent_ms else 0, now_ms) + wait_ms
            self._spent_ms = now_ms

    def wait_ms(self, now_ms: int) -> int:
        """How long to wait with the next slice; not at all after the clock was put back."""
        if now_ms < self._spent_ms:
            return 0
        return max(int(self._due_ms - now_ms), 0)
