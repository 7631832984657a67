"""The transactions that a walk over the log is in the midst of (`CleanedTransactionMetadata`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from urteil.broker.log.producer_states import read_marker
from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.wire.batches import BatchHeader
from urteil.broker.wire.primitives import Buffer


class TransactionTracker:
    """Told each batch in order: which may go, since its transaction was aborted or is all gone."""

    __slots__ = ("_aborting", "_coming", "_committing", "_retained")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._coming = deque(sorted(set(aborted), key=lambda txn: txn.first_offset))
        self._aborting: dict[int, tuple[AbortedTxn, bool]] = {}
        self._committing: set[int] = set()
        self._retained: list[AbortedTxn] = []

    def discards(self, header: BatchHeader, data: Buffer) -> bool:
        """Whether a batch is of an aborted transaction, or a marker with nothing before it."""
        self._reach(header)
        if header.is_control:
            return self._at_marker(header, data)
        if not header.is_transactional:
            return False
        aborting = self._aborting.get(header.producer_id)
        if aborting is None:
            self._committing.add(header.producer_id)
            return False
        self._aborting[header.producer_id] = (aborting[0], True)
        return True

    def drain_retained(self) -> list[AbortedTxn]:
        """The aborted transactions whose marker came since the last call, and batches of theirs
        before it: readers have to know them still."""
        taken, self._retained = self._retained, []
        return taken

    def _reach(self, header: BatchHeader) -> None:
        while self._coming and self._coming[0].first_offset <= header.last_offset:
            txn = self._coming.popleft()
            known = self._aborting.get(txn.producer_id)
            if known is None or known[0].last_offset < header.base_offset:
                self._aborting[txn.producer_id] = (txn, False)
        if self._aborting:
            # one whose marker is missing, in a damaged log, shall not swallow what follows
            known = self._aborting.get(header.producer_id)
            if known is not None and known[0].last_offset < header.base_offset:
                del self._aborting[header.producer_id]

    def _at_marker(self, header: BatchHeader, data: Buffer) -> bool:
        marker = read_marker(data) if header.records_count else None
        if marker is None:
            return header.records_count == 0
        if marker.commit:
            seen = header.producer_id in self._committing
            self._committing.discard(header.producer_id)
            return not seen
        txn, seen = self._aborting.pop(header.producer_id, (None, False))
        if txn is not None and seen:
            self._retained.append(txn)
            return False
        return True
