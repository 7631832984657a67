"""The start offset of each leader epoch in a log (KIP-101, KIP-279; `LeaderEpochFileCache`)."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from pathlib import Path

from urteil.broker.log.checkpoints import LEADER_EPOCHS, DamagedFile, read_epochs, write_epochs
from urteil.broker.log.storage import Storage

_log = logging.getLogger("urteil.broker.log")

UNKNOWN = (-1, -1)


class EpochCache:
    """Epochs with their start offsets, both ascending; stored in `leader-epoch-checkpoint`.

    The file is written at every change but synced only by the flush that raises the recovery point.
    Entries lost in a power cut are recovered from the batches beyond that point. So a thousand
    partitions can begin an epoch at once without a sync.
    """

    __slots__ = ("_epochs", "_path", "_starts", "_storage", "damaged")

    def __init__(self, storage: Storage, directory: Path) -> None:
        """Read the file. A damaged one leaves the cache empty and sets `damaged`."""
        self._storage = storage
        self._path = directory / LEADER_EPOCHS
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.damaged = False
        try:
            entries = read_epochs(storage, self._path)
        except DamagedFile as error:
            _log.error("%s: rebuilt from the log", error)
            entries, self.damaged = [], True
        for epoch, start in entries:
            self._put(epoch, start)

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int:
        """The newest epoch, -1 without any."""
        return self._epochs[-1] if self._epochs else -1

    def relocate(self, directory: Path) -> None:
        """The log's folder was renamed."""
        self._path = directory / LEADER_EPOCHS

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` starts at `start_offset`, unless it already has an entry.

        Entries with an equal or newer epoch, or an equal or later start, are removed.
        """
        if epoch < 0 or start_offset < 0:
            return
        known = len(self._epochs)
        if self._put(epoch, start_offset):
            self._write(grown=len(self._epochs) > known)

    def assign_all(self, entries: list[tuple[int, int]]) -> None:
        """Assign several epochs with one write of the file."""
        if any([self._put(epoch, start) for epoch, start in entries]):
            self._write()

    def replace(self, entries: list[tuple[int, int]]) -> None:
        """Replace all entries."""
        self._epochs, self._starts = [], []
        for epoch, start in entries:
            self._put(epoch, start)
        self._write()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def _put(self, epoch: int, start_offset: int) -> bool:
        if self._epochs and self._epochs[-1] == epoch and self._starts[-1] <= start_offset:
            return False
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        del self._epochs[keep:], self._starts[keep:]
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def end_offset(self, requested: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above `requested` and the offset where it ended (KIP-279).

        (-1, -1) for epoch -1 and for an epoch newer than all entries. An epoch older than all
        entries ends where the first entry begins.
        """
        if requested == -1 or not self._epochs or requested > self._epochs[-1]:
            return UNKNOWN
        if requested == self._epochs[-1]:
            return requested, log_end_offset
        higher = bisect_right(self._epochs, requested)
        floor = self._epochs[higher - 1] if higher else requested
        return floor, self._starts[higher]

    def epoch_at(self, offset: int) -> int:
        """The epoch in which `offset` was written, -1 when unknown."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else -1

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop epochs that begin at or after `end_offset`."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop epochs that end before `start_offset`; the epoch that spans it now begins there."""
        last = bisect_right(self._starts, start_offset) - 1
        if last < 0 or (last == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:last], self._starts[:last]
        self._starts[0] = start_offset
        self._write()

    def clear(self) -> None:
        if self._epochs or self.damaged:
            self._epochs.clear()
            self._starts.clear()
            self._write()

    def _write(self, *, grown: bool = False) -> None:
        grown = grown and not self.damaged
        self.damaged = False
        write_epochs(self._storage, self._path, self.entries, grown=grown)

    def write(self) -> None:
        """Write the file even if nothing changed: a new log needs one."""
        self._write()
