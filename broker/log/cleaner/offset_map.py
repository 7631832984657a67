"""The newest offset of each key, in bounded memory (Kafka's `OffsetMap`)."""

from __future__ import annotations

from collections.abc import Sequence

ENTRY_BYTES = 150
"""What a dict takes for an entry beside its key's bytes, at its worst moment but one: growing."""


class OffsetMap:
    """Keys as they are, not their hashes: two keys are never taken for one.

    `full` is a matter between two batches: the one that fills the map is still taken whole, so
    that a cleaning always gets further.
    """

    __slots__ = ("_limit_bytes", "latest_offset", "offsets", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.used_bytes = 0
        self.offsets: dict[bytes, int] = {}
        self.latest_offset = -1

    @property
    def full(self) -> bool:
        return self.used_bytes >= self._limit_bytes

    @property
    def utilization(self) -> float:
        """How much of the limit is used, from 0 on."""
        return self.used_bytes / max(self._limit_bytes, 1)

    def put(self, keys: Sequence[tuple[bytes, int]]) -> None:
        """Know the offsets of keys, which rise from call to call and within one."""
        known = len(self.offsets)
        self.offsets.update(keys)
        new = len(self.offsets) - known
        if new:
            key_bytes = sum(len(key) for key, _ in keys) * new // len(keys)
            self.used_bytes += new * ENTRY_BYTES + key_bytes
