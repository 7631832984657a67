"""The replication quota of throttled replicas, on leaders and followers (KIP-73).

Topics list their throttled replicas in `leader.` and `follower.replication.throttled.replicas`; the
broker's limits are `leader.` and `follower.replication.throttled.rate`. Source:
`ReplicationQuotaManager`.
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
        self._windows: deque[tuple[float, int]] = deque()  # (begin in ms, bytes)

    def record(self, size: int, now_ms: float) -> None:
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append((now_ms, size))
            self._forget(now_ms)
        else:
            began_ms, known = self._windows[-1]
            self._windows[-1] = began_ms, known + size

    def per_second(self, now_ms: float) -> float:
        """The recorded bytes divided by the time since the first of them, at least one window."""
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
    """The quota of one side. The bytes of all throttled replicas are recorded; the caller delays
    only the replicas that are not in sync."""

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
        """Whether throttled replicas must wait."""
        limit = self._properties.get(self._limit_name)
        return limit is not None and self._rate.per_second(self._now_ms()) > int(limit)

    def record(self, size: int) -> None:
        """Record bytes that throttled replicas sent or received."""
        self._rate.record(size, self._now_ms())


def is_listed(replicas: str, partition: int, broker_id: int) -> bool:
    """Whether a topic's setting, `*` or a list of `partition:broker`, names a replica."""
    if not replicas:
        return False
    return replicas == EVERY_REPLICA or f"{partition}:{broker_id}" in replicas.split(",")
