"""Verification that a partition belongs to a transaction before its first append (KIP-890).

The leader sends the coordinator a verification request. An end marker that arrives before the
append makes the coordinator's response obsolete; it removes the guard, and the append fails.
Sources: `VerificationStateEntry`, `VerificationGuard` and `UnifiedLog` of Kafka 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from urteil.broker.log.producer_states import Refusal, StagedBatches
from urteil.broker.wire.batches import BatchHeader
from urteil.broker.wire.errors import ErrorCode


class Guard:
    """Identifies one running verification, by object identity."""


TRUSTED = Guard()
"""The guard of appends that need no verification."""


@dataclass(slots=True)
class _Verification:
    epoch: int
    lowest_sequence: int
    began_ms: int
    guard: Guard = field(default_factory=Guard)


class Verifications:
    """The verifications of one log, by producer id."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[int, _Verification] = {}

    def start(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Guard:
        """Begin a verification; return the guard for the append. Concurrent batches of a producer
        share it."""
        known = self._open.get(producer_id)
        if known is None:
            known = self._open[producer_id] = _Verification(epoch, sequence, now_ms)
        if epoch > known.epoch:
            known.epoch, known.lowest_sequence = epoch, sequence
        elif epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
        return known.guard

    def is_valid(self, producer_id: int, guard: Guard | None) -> bool:
        if guard is TRUSTED:
            return True
        known = self._open.get(producer_id)
        return known is not None and known.guard is guard

    def check(
        self, header: BatchHeader, staged: StagedBatches, guard: Guard | None, end_offset: int
    ) -> Refusal | None:
        """Refuse the first batch of a transaction that the coordinator did not confirm, and a batch
        that overtakes one still being verified; `end_offset` is the end of the log."""
        producer_id = header.producer_id
        if header.is_control or staged.is_open(producer_id):
            return None
        if header.is_transactional and not self.is_valid(producer_id, guard):
            return ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
        known = self._open.get(producer_id)
        if (
            known is not None
            and header.base_sequence > known.lowest_sequence
            and not staged.is_stale(header)
        ):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
                f"Out of order sequence number for producer {producer_id} at offset "
                f"{end_offset}: {header.base_sequence} (incoming seq. number), "
                f"{known.lowest_sequence} (earliest seen sequence)"
            )
        return None

    def clear(self, producer_id: int) -> None:
        """Remove a verification: its batch was appended, or the transaction ended."""
        self._open.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Drop verifications whose batch never arrived, after the expiration time of producers."""
        self._open = {
            producer_id: verification
            for producer_id, verification in self._open.items()
            if now_ms - verification.began_ms < expiration_ms
        }
