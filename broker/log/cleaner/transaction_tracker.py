"""The open transactions during a pass over a log (`CleanedTransactionMetadata`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from urteil.broker.log.producer_states import read_marker
from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.wire.batches import BatchHeader
from urteil.broker.wire.primitives import Buffer


class TransactionTracker:
    """Decides for each batch, in offset order, whether its transaction allows its removal."""

    __slots__ = ("_aborting", "_committing", "_retained", "_upcoming")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._upcoming = deque(sorted(set(aborted), key=lambda txn: txn.first_offset))
        self._aborting: dict[int, tuple[AbortedTxn, bool]] = {}
        self._committing: set[int] = set()
        self._retained: list[AbortedTxn] = []

    def is_discarded(self, header: BatchHeader, data: Buffer) -> bool:
        """Whether a batch belongs to an aborted transaction, or is a marker without records before
        it."""
        self._advance(header)
        if header.is_control:
            return self._is_marker_discarded(header, data)
        if not header.is_transactional:
            return False
        aborting = self._aborting.get(header.producer_id)
        if aborting is None:
            self._committing.add(header.producer_id)
            return False
        self._aborting[header.producer_id] = (aborting[0], True)
        return True

    def drain_retained(self) -> list[AbortedTxn]:
        """The aborted transactions that ended since the last call and still have batches; they stay
        in the transaction index."""
        retained, self._retained = self._retained, []
        return retained

    def _advance(self, header: BatchHeader) -> None:
        while self._upcoming and self._upcoming[0].first_offset <= header.last_offset:
            txn = self._upcoming.popleft()
            known = self._aborting.get(txn.producer_id)
            if known is None or known[0].last_offset < header.base_offset:
                self._aborting[txn.producer_id] = (txn, False)
        if self._aborting:
            # in a damaged log a missing marker must not affect later transactions
            known = self._aborting.get(header.producer_id)
            if known is not None and known[0].last_offset < header.base_offset:
                del self._aborting[header.producer_id]

    def _is_marker_discarded(self, header: BatchHeader, data: Buffer) -> bool:
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
