"""The newest offset of each key, in bounded memory (Kafka's `OffsetMap`)."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

ENTRY_BYTES = 150
"""What a dict takes for an entry beside its key's bytes, at its worst moment but one: growing."""


class OffsetMap:
    """Keys as they are, not their hashes: two keys are never taken for one.

    `full` is a matter between two batches: the one that fills the map is still taken whole, so
    that a cleaning always gets further.
    """

    __slots__ = (
        "_limit_bytes", "_newest", "latest_offset", "offsets", "start_offset", "used_bytes",
    )  # fmt: skip

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.used_bytes = 0
        self.offsets: dict[bytes, int] = {}
        self.start_offset = 0
        self.latest_offset = -1
        self._newest: array[int] | None = None

    @property
    def full(self) -> bool:
        return self.used_bytes >= self._limit_bytes

    @property
    def utilization(self) -> float:
        """How much of the limit is used, from 0 on."""
        return self.used_bytes / max(self._limit_bytes, 1)

    def begin(self, start_offset: int) -> None:
        """The keys of every record from there up to `latest_offset` are going to be put."""
        self.start_offset, self.latest_offset = start_offset, start_offset - 1

    def supersedes(self, first_offset: int, last_offset: int) -> bool:
        """Whether the map, which takes no more keys, tells of these offsets that none of them is
        the newest of its key, so that nobody need look at the records."""
        if first_offset < self.start_offset or last_offset > self.latest_offset:
            return False
        if self._newest is None:
            self._newest = array("q", sorted(self.offsets.values()))
        at = bisect_left(self._newest, first_offset)
        return at == len(self._newest) or self._newest[at] > last_offset

    def put(self, keys: Sequence[tuple[bytes, int]]) -> None:
        """Know the offsets of keys, which rise from call to call and within one."""
        known = len(self.offsets)
        self.offsets.update(keys)
        new = len(self.offsets) - known
        if new:
            key_bytes = sum(len(key) for key, _ in keys) * new // len(keys)
            self.used_bytes += new * ENTRY_BYTES + key_bytes
