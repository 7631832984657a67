"""The in-sync replicas of a partition: committed by the controller, or proposed to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IsrState:
    """`committed` is what the controller wrote last, `proposed` what it was asked for (or None).

    The high watermark counts `maximal`: whoever may be in the ISR after the answer, whichever it
    is (KIP-497, class PartitionState).
    """

    committed: tuple[int, ...]
    proposed: tuple[int, ...] | None = None

    @property
    def maximal(self) -> frozenset[int]:
        return frozenset(self.committed) | frozenset(self.proposed or ())

    @property
    def in_flight(self) -> bool:
        return self.proposed is not None

    def expand(self, broker_id: int) -> IsrState:
        return IsrState(self.committed, (*self.committed, broker_id))

    def shrink(self, gone: set[int]) -> IsrState:
        return IsrState(self.committed, tuple(one for one in self.committed if one not in gone))

    def rollback(self) -> IsrState:
        """The controller said that it did not apply the proposal."""
        return IsrState(self.committed)
