"""The limit on the cleaner's I/O (`log.cleaner.io.max.bytes.per.second`)."""

from __future__ import annotations

_SLICE_MS = 300


class IoThrottle:
    """Computes the size of the next slice of work and the delay before it.

    All cleanings share the rate. Without a limit slices are unbounded.
    """

    __slots__ = ("_due_ms", "_spent_ms", "bytes_per_second")

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._due_ms = 0.0
        self._spent_ms = 0

    def budget(self, shares: int) -> float:
        """The bytes of one slice when `shares` cleanings run."""
        return max(self.bytes_per_second * _SLICE_MS / 1000 / max(shares, 1), 1)

    def record(self, size: int, now_ms: int) -> None:
        """Record the bytes of a slice that ends now."""
        if size:
            wait_ms = size * 1000 / self.bytes_per_second
            self._due_ms = max(self._due_ms if now_ms >= self._spent_ms else 0, now_ms) + wait_ms
            self._spent_ms = now_ms

    def wait_ms(self, now_ms: int) -> int:
        """The delay before the next slice; 0 after the clock was set back."""
        if now_ms < self._spent_ms:
            return 0
        return max(int(self._due_ms - now_ms), 0)
