"""The newest offset of each key, in bounded memory (Kafka's `OffsetMap`)."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

ENTRY_BYTES = 150
"""The bytes that a dict needs for an entry beside its key, except while it grows."""


class OffsetMap:
    """A map from the keys themselves, not from their hashes: keys never collide.

    `is_full` is checked between batches. The batch that fills the map is still added completely, so
    that every cleaning advances.
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
    def is_full(self) -> bool:
        return self.used_bytes >= self._limit_bytes

    @property
    def utilization(self) -> float:
        """The used fraction of the limit; may exceed 1."""
        return self.used_bytes / max(self._limit_bytes, 1)

    def begin(self, start_offset: int) -> None:
        """Begin at `start_offset`: the map covers all records from there to `latest_offset`."""
        self.start_offset, self.latest_offset = start_offset, start_offset - 1

    def supersedes(self, first_offset: int, last_offset: int) -> bool:
        """Whether all records in this range of offsets have newer ones with the same key, so that
        the records need not be read. The map must be complete."""
        if first_offset < self.start_offset or last_offset > self.latest_offset:
            return False
        if self._newest is None:
            self._newest = array("q", sorted(self.offsets.values()))
        at = bisect_left(self._newest, first_offset)
        return at == len(self._newest) or self._newest[at] > last_offset

    def put(self, keys: Sequence[tuple[bytes, int]]) -> None:
        """Add keys with their offsets, which ascend within a call and between calls."""
        known = len(self.offsets)
        self.offsets.update(keys)
        new = len(self.offsets) - known
        if new:
            key_bytes = sum(len(key) for key, _ in keys) * new // len(keys)
            self.used_bytes += new * ENTRY_BYTES + key_bytes
