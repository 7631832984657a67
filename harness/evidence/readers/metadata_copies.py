"""The copies of KRaft's metadata log on the controllers' disks, and what of it is committed.

The copy with the highest epoch and end is the best; in each other copy, everything up to the last
batch that it shares with the best one (same offset, same epoch) is equal to it, as in Raft. What a
majority shares is committed if no copy that lacks it has a later log: a voter grants no vote to an
earlier log than its own, so only a copy with it can be elected.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

SEGMENT = f"{0:020}.log"
"""Metadata logs of the lab's clusters keep one segment and no snapshot (`targets/kraft.py`)."""

_HEADER = struct.Struct(">qiibIhi")
_LENGTH_AT_END = 12


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """One batch: the offset behind it, its epoch, where its bytes begin in the file, its header."""

    end: int
    epoch: int
    at: int
    head: bytes


@dataclass(slots=True)
class MetadataCopy:
    """One controller's copy: the batches that its file holds."""

    file: Path
    batches: list[BatchPlace] = field(default_factory=list)
    size: int = 0

    def read_new(self) -> None:
        """Add batches that were appended. After a truncation the file is read anew."""
        try:
            with self.file.open("rb") as file:
                if not self._still_holds(file):
                    self.batches, self.size = [], 0
                file.seek(self.size)
                data = file.read()
        except FileNotFoundError:
            self.batches, self.size = [], 0
            return
        at = 0
        while at + _HEADER.size <= len(data):
            head = data[at : at + _HEADER.size]
            base, length, epoch, _, _, _, last_delta = _HEADER.unpack(head)
            if length <= 0 or at + length + _LENGTH_AT_END > len(data):
                break
            self.batches.append(BatchPlace(base + last_delta + 1, epoch, self.size + at, head))
            at += length + _LENGTH_AT_END
        self.size += at

    def _still_holds(self, file: BinaryIO) -> bool:
        """Whether the last known batch still stands in its place."""
        if not self.batches:
            return True
        file.seek(self.batches[-1].at)
        return bool(file.read(_HEADER.size) == self.batches[-1].head)

    def rank(self) -> tuple[int, int]:
        return (self.batches[-1].epoch, self.batches[-1].end) if self.batches else (-1, 0)

    def shared_end(self, best: dict[int, int]) -> int:
        """The end of what this copy shares with the best one, whose epochs by batch end these
        are."""
        ends = (batch.end for batch in reversed(self.batches) if best.get(batch.end) == batch.epoch)
        return next(ends, 0)


def find_committed(copies: Sequence[MetadataCopy]) -> tuple[MetadataCopy, int]:
    """The best copy, and the offset below which it is committed; 0 where nothing is known to be."""
    best = max(copies, key=MetadataCopy.rank)
    epochs = {batch.end: batch.epoch for batch in best.batches}
    shared = sorted(((copy.shared_end(epochs), copy.rank()) for copy in copies), reverse=True)
    for end, _ in shared[len(copies) // 2 :]:
        others = [rank for shared_end, rank in shared if shared_end < end]
        if all(rank < (epochs.get(end, -1), end) for rank in others):
            return best, end
    return best, 0
