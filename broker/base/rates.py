"""Measured rates of clients, and the throttle times that follow from a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

_LONG, _INT = 63, 31


@dataclass(frozen=True, slots=True)
class Windows:
    """The span of a measurement: `count` windows of `size_ms` each."""

    count: int = 11
    size_ms: int = 1000


class Rate:
    """The rate per second over all windows (`Rate` and `SampledStat` of Apache Kafka).

    At the start all windows but the last count as complete, so that a first request does not look
    like a flood.
    """

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[list[float]] = []  # begin in ms and amount, oldest first

    def record(self, amount: float, now_ms: float) -> None:
        """Add an amount; a negative one cancels an earlier one."""
        size_ms = self._windows.size_ms
        if not self._samples or now_ms - self._samples[-1][0] >= size_ms:
            begin_ms = now_ms
            if self._samples:
                last_ms = self._samples[-1][0]
                begin_ms = last_ms + (now_ms - last_ms) // size_ms * size_ms
            self._samples.append([begin_ms, 0.0])
            del self._samples[: -self._windows.count]
        self._samples[-1][1] += amount

    def measure(self, now_ms: float) -> tuple[float, float]:
        """Return the rate per second, and the span in ms over which it was measured."""
        span_ms = self._span_ms(now_ms)
        return sum(amount for _, amount in self._samples) / (span_ms / 1000), span_ms

    def _span_ms(self, now_ms: float) -> float:
        size_ms, count = self._windows.size_ms, self._windows.count
        while self._samples and now_ms - self._samples[0][0] >= count * size_ms:
            self._samples.pop(0)
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0.0
        full = int(elapsed_ms // size_ms)
        if full < count - 1:
            elapsed_ms += (count - 1 - full) * size_ms
        return max(elapsed_ms, 1.0)

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """Return the wait until the rate is down to the limit; 0 at or below it."""
        rate, span_ms = self.measure(now_ms)
        return _time_ms((rate - limit) * span_ms, limit) if rate > limit else 0


class Average:
    """The average of the values in the same windows (`Avg` of Apache Kafka)."""

    __slots__ = ("_count", "_sum")

    def __init__(self, windows: Windows) -> None:
        self._sum, self._count = Rate(windows), Rate(windows)

    def record(self, value: float, now_ms: float) -> None:
        self._sum.record(value, now_ms)
        self._count.record(1, now_ms)

    def value(self, now_ms: float) -> float:
        """Return the average; 0 without values."""
        count, _ = self._count.measure(now_ms)
        return self._sum.measure(now_ms)[0] / count if count else 0.0


class TokenBucket:
    """A token bucket that holds up to the tokens of all windows (KIP-599)."""

    __slots__ = ("_filled_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows, limit: float, now_ms: float) -> None:
        self._windows = windows
        self._tokens = self._burst(limit)
        self._filled_ms = now_ms

    def _burst(self, limit: float) -> float:
        return self._windows.count * self._windows.size_ms / 1000 * limit

    def is_in_debt(self, limit: float, now_ms: float) -> bool:
        self._fill(limit, now_ms)
        return self._tokens < 0

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """Return the wait until the debt is paid; 0 without debt."""
        return _time_ms(-self._tokens * 1000, limit) if self.is_in_debt(limit, now_ms) else 0

    def take(self, amount: float, limit: float, now_ms: float) -> None:
        """Remove tokens; the balance may become negative."""
        self._fill(limit, now_ms)
        self._tokens = min(self._burst(limit), self._tokens - amount)

    def _fill(self, limit: float, now_ms: float) -> None:
        more = (now_ms - self._filled_ms) / 1000 * limit
        self._tokens = min(self._burst(limit), self._tokens + more)
        self._filled_ms = now_ms


def _time_ms(owed: float, limit: float) -> int:
    """A wait in ms, at most the largest int64: a limit of 0 is never reached again."""
    longest = (1 << _LONG) - 1
    ms = owed / limit if limit else math.inf
    return round(max(-longest, min(ms, longest)))


def answered_throttle_ms(wait_ms: int) -> int:
    """Return the throttle time of a response, by Apache Kafka's conversion: an int64 loses its
    upper bits, and a negative result becomes 0. Therefore a limit of 0 bytes throttles nothing."""
    return max((wait_ms + (1 << _INT)) % (1 << _INT + 1) - (1 << _INT), 0)
