"""Aborted transactions of a segment, `.txnindex` (Kafka's `TransactionIndex`, `AbortedTxn`)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from urteil.broker.log.storage import Storage

_ENTRY = struct.Struct(">hqqqq")


@dataclass(frozen=True, slots=True)
class AbortedTxn:
    """A transaction that ended with an abort marker at `last_offset`.

    `last_stable_offset` is the log's right after the marker: a reader of records below it needs no
    entries of later segments.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """The file exists only if the segment has an abort marker."""

    __slots__ = ("_entries", "_storage", "path")

    def __init__(self, storage: Storage, path: Path) -> None:
        self._storage = storage
        self.path = path
        self._entries: list[AbortedTxn] | None = None

    @property
    def entries(self) -> list[AbortedTxn]:
        """All entries by marker offset. Raises ValueError for a damaged file."""
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    def _load(self) -> list[AbortedTxn]:
        if not self._storage.exists(self.path):
            return []
        data = self._storage.read(self.path)
        if not data or len(data) % _ENTRY.size:
            raise ValueError(f"{self.path}: {len(data)} bytes are not a multiple of the entry size")
        rows = list(_ENTRY.iter_unpack(data))
        if any(row[0] != 0 for row in rows):
            raise ValueError(f"{self.path}: unknown entry version")
        return [AbortedTxn(*row[1:]) for row in rows]

    def is_sane(self) -> bool:
        """Whether the file is missing or readable."""
        try:
            self._entries = self._load()
        except ValueError:
            return False
        return True

    def append(self, txn: AbortedTxn) -> None:
        """Add an entry and write it to the file immediately: aborts are rare."""
        entries = self.entries
        row = _ENTRY.pack(
            0, txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset
        )
        file = self._storage.open(self.path, create=True)
        try:
            file.write_at([row], len(row), len(entries) * _ENTRY.size)
        finally:
            file.close()
        entries.append(txn)

    def truncate(self, offset: int) -> None:
        """Drop transactions whose marker is at `offset` or later."""
        keep = [txn for txn in self.entries if txn.last_offset < offset]
        if len(keep) == len(self.entries):
            return
        if not keep:  # the next start would treat an empty file as damaged
            self.clear()
            return
        file = self._storage.open(self.path, create=True)
        try:
            file.truncate(len(keep) * _ENTRY.size)
        finally:
            file.close()
        self._entries = keep

    def sync(self) -> None:
        if self._entries:
            file = self._storage.open(self.path, create=True)
            try:
                file.sync()
            finally:
                file.close()

    def clear(self) -> None:
        self._entries = []
        self._storage.remove(self.path)
