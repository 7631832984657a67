"""The positions of an active segment's newest batches, kept in memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left

_BATCHES = 512
"""At least so many batches are kept, at the most twice as many."""


class TailPositions:
    """The positions of the newest batches of an active segment, so that reads need no scan."""

    __slots__ = ("_lasts", "_positions", "_start_offset", "end_offset")

    def __init__(self, start_offset: int) -> None:
        self._start_offset = start_offset
        self.end_offset = start_offset
        self._lasts = array("q")
        self._positions = array("q")

    def add(self, last_offset: int, position: int) -> None:
        if len(self._lasts) >= 2 * _BATCHES:
            self._start_offset = self._lasts[_BATCHES - 1] + 1
            del self._lasts[:_BATCHES], self._positions[:_BATCHES]
        self._lasts.append(last_offset)
        self._positions.append(position)
        self.end_offset = last_offset + 1

    def find(self, offset: int) -> int:
        """The position of the first batch that ends at `offset` or later; -1 if it is not
        stored."""
        if offset < self._start_offset or offset >= self.end_offset:
            return -1
        return self._positions[bisect_left(self._lasts, offset)]
