"""The copies of KRaft's metadata log on the controllers' disks, and their committed part.

The copy with the highest epoch and end is the best. As in Raft, each other copy is equal to it up
to the last batch that both share (same offset, same epoch). A part that a majority shares is
committed if no copy without it has a later log: a voter grants no vote to an earlier log than its
own, so only a copy with it can be elected.

The log itself contains the voters of a dynamic quorum (KIP-853). They are those of the latest
record of voters in the best copy, committed or not, as for the leader; a copy is a voter's if its
log directory has the voter's id. Until the first such record, and in a static quorum, all copies
count.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from urteil.harness.dependencies.kraft_storage import META
from urteil.harness.evidence.readers.metadata_log import (
    MetadataLog,
    RecordSchemas,
    find_segments,
    parse_records,
    voters_of,
)
from urteil.harness.evidence.readers.stored_batches import parse_batches

_HEADER = struct.Struct(">qiibIhi")
_LENGTH_AT_END = 12
_CONTROL = 0x20
DIRECTORY = "directory.id="
"""The line of `meta.properties` with the log directory's id."""


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """One batch: the offset behind it, its epoch, the position of its bytes, its header."""

    end: int
    epoch: int
    file: Path
    at: int
    size: int
    head: bytes


@dataclass(slots=True)
class MetadataCopy:
    """One controller's copy: the batches in its segments. `folder` is its `__cluster_metadata-0`,
    `schemas` finds the definitions of its release."""

    folder: Path
    schemas: Callable[[], RecordSchemas]
    batches: list[BatchPlace] = field(default_factory=list)
    _voters: list[tuple[int, dict[int, str]]] = field(default_factory=list)
    _segment: Path = Path()
    _read_to: int = 0

    def read_new(self) -> None:
        """Add appended batches. After a truncation all segments are read again."""
        if not self._still_holds():
            self.batches, self._voters, self._segment = [], [], Path()
        for segment in find_segments(self.folder):
            if segment.name > self._segment.name:
                self._segment, self._read_to = segment, 0
            if segment == self._segment:
                self._read_segment()

    def _read_segment(self) -> None:
        try:
            with self._segment.open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except FileNotFoundError:  # deleted, or moved by a truncation
            return
        at = 0
        while at + _HEADER.size <= len(data):
            head = data[at : at + _HEADER.size]
            base, length, epoch, _, _, attributes, last_delta = _HEADER.unpack(head)
            size = length + _LENGTH_AT_END
            if length <= 0 or at + size > len(data):
                break
            self.batches.append(
                BatchPlace(
                    base + last_delta + 1, epoch, self._segment, self._read_to + at, size, head
                )
            )
            if attributes & _CONTROL:
                self._read_voters(data[at : at + size], base + last_delta + 1)
            at += size
        self._read_to += at

    def _read_voters(self, data: bytes, end: int) -> None:
        for batch in parse_batches(data):
            if isinstance(batch, str) or batch.error is not None:
                continue
            for record in parse_records(batch, self.schemas(), MetadataLog(self.folder)):
                if (voters := voters_of(record)) is not None:
                    self._voters.append((end, voters))

    def voters(self, before: int | None = None) -> dict[int, str]:
        """The voters by the latest record in the copy, or in front of an offset: directory ids by
        node id. None are known of a static quorum."""
        records = [voters for end, voters in self._voters if before is None or end <= before]
        return records[-1] if records else {}

    def directory(self) -> str:
        """The id of the log directory; empty before it has one."""
        return directory_of(self.folder)

    def is_of(self, voters: dict[int, str]) -> bool:
        """Whether it is the copy of one of these voters; without known voters every copy is."""
        return not voters or self.directory() in voters.values()

    def _still_holds(self) -> bool:
        """Whether the last known batch is still at its position."""
        if not self.batches:
            return False
        last = self.batches[-1]
        try:
            with last.file.open("rb") as file:
                file.seek(last.at)
                return file.read(_HEADER.size) == last.head
        except FileNotFoundError:
            return False

    def rank(self) -> tuple[int, int]:
        return (self.batches[-1].epoch, self.batches[-1].end) if self.batches else (-1, 0)

    def shared_end(self, best: dict[int, int]) -> int:
        """The end of the part that this copy shares with the best one, whose epochs by batch end
        these are."""
        ends = (batch.end for batch in reversed(self.batches) if best.get(batch.end) == batch.epoch)
        return next(ends, 0)


def directory_of(folder: Path) -> str:
    """The id of the log directory with this metadata log; empty before it has one."""
    try:
        lines = (folder.parent / META).read_text().splitlines()
    except FileNotFoundError:
        return ""
    ids = (line.removeprefix(DIRECTORY) for line in lines if line.startswith(DIRECTORY))
    return next(ids, "")


def find_committed(copies: Sequence[MetadataCopy]) -> tuple[MetadataCopy, int]:
    """The best copy, and the offset below which it is committed; 0 if no part is known to be
    committed."""
    best = max(copies, key=MetadataCopy.rank)
    epochs = {batch.end: batch.epoch for batch in best.batches}
    voters = best.voters()
    shared = [(copy.shared_end(epochs), copy.rank(), copy.is_of(voters)) for copy in copies]
    ends = sorted((end for end, _, is_voter in shared if is_voter), reverse=True)
    for end in ends[(len(voters) or len(copies)) // 2 :]:
        others = [rank for shared_end, rank, _ in shared if shared_end < end]
        if all(rank < (epochs.get(end, -1), end) for rank in others):
            return best, end
    return best, 0
