"""Proof that a partition is part of a transaction before its first batch is appended (KIP-890).

Sources: `VerificationStateEntry`, `VerificationGuard` and `UnifiedLog` of Kafka 3.9. The leader
asks the coordinator; between question and append an end marker may come, after which the answer is
worth nothing: it takes the guard away.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class Guard:
    """Stands for one verification that is under way; known by its identity."""


TRUSTED = Guard()
"""For what needs no verification."""


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
        """The guard to show at the append; batches in flight of one producer share it."""
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
        """The lowest sequence seen while the first batch of a transaction is being verified: none
        above it may be appended before it."""
        known = self._open.get(producer_id)
        return None if known is None else known.lowest_sequence

    def clear(self, producer_id: int) -> None:
        """A batch was appended, or the transaction ended."""
        self._open.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those whose batch never came, as producers are forgotten."""
        self._open = {
            producer_id: one
            for producer_id, one in self._open.items()
            if now_ms - one.began_ms < expiration_ms
        }
