"""Verification that a partition belongs to a transaction before its first append (KIP-890).

The leader sends the coordinator a verification request. An end marker that arrives before the
append makes the coordinator's response obsolete; it removes the guard, and the append fails.
Sources: `VerificationStateEntry`, `VerificationGuard` and `UnifiedLog` of Kafka 3.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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

    def lowest_sequence(self, producer_id: int) -> int | None:
        """The lowest sequence among the batches being verified, which must be appended first; None
        without a verification."""
        known = self._open.get(producer_id)
        return None if known is None else known.lowest_sequence

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
