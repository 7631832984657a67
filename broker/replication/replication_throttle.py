"""How much replication of chosen partitions may cost, on either side (KIP-73).

Source: `ReplicationQuotaManager`. Which replicas: `leader.` and `follower.replication.throttled.
replicas` of their topics; how much: `leader.` and `follower.replication.throttled.rate`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

EVERY_REPLICA = "*"


class Rate:
    """Bytes a second over the last `samples` windows of `window_ms`, this one included."""

    def __init__(self, samples: int, window_ms: float) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._windows: deque[tuple[float, int]] = deque()  # when it began, bytes

    def record(self, size: int, now_ms: float) -> None:
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append((now_ms, size))
            self._forget(now_ms)
        else:
            began_ms, known = self._windows[-1]
            self._windows[-1] = began_ms, known + size

    def per_second(self, now_ms: float) -> float:
        """Of what is remembered, over the time since it began, at least one window."""
        self._forget(now_ms)
        if not self._windows:
            return 0.0
        elapsed_ms = max(now_ms - self._windows[0][0], self._window_ms)
        return sum(size for _, size in self._windows) / elapsed_ms * 1000

    def _forget(self, now_ms: float) -> None:
        oldest_ms = now_ms - self._samples * self._window_ms
        while self._windows and self._windows[0][0] <= oldest_ms:
            self._windows.popleft()


class Throttle:
    """One side's quota. All that throttled replicas cost is recorded, in sync or not; it is the
    caller's to hold back those only that are not in sync."""

    def __init__(
        self, properties: Mapping[str, str], role: str, now_ms: Callable[[], float]
    ) -> None:
        samples = int(properties.get("replication.quota.window.num", "11"))
        window_s = int(properties.get("replication.quota.window.size.seconds", "1"))
        self._limit_name = f"{role}.replication.throttled.rate"
        self._properties = properties
        self._rate = Rate(samples, window_s * 1000)
        self._now_ms = now_ms

    @property
    def is_exceeded(self) -> bool:
        """Whether throttled replicas have to wait."""
        limit = self._properties.get(self._limit_name)
        return limit is not None and self._rate.per_second(self._now_ms()) > int(limit)

    def record(self, size: int) -> None:
        """Bytes of throttled replicas that went through."""
        self._rate.record(size, self._now_ms())


def is_listed(replicas: str, partition: int, broker_id: int) -> bool:
    """Whether a topic's setting, `*` or a list of `partition:broker`, names a replica."""
    if not replicas:
        return False
    return replicas == EVERY_REPLICA or f"{partition}:{broker_id}" in replicas.split(",")
