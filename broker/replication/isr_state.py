"""The in-sync replicas of a partition: committed by the controller, or proposed to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IsrState:
    """`committed` is the ISR that the controller wrote last, `proposed` a pending change or None.

    The high watermark counts `maximal`: every broker that may be in the ISR after the controller's
    response (KIP-497, class PartitionState).
    """

    committed: tuple[int, ...]
    proposed: tuple[int, ...] | None = None

    @property
    def maximal(self) -> frozenset[int]:
        return frozenset(self.committed) | frozenset(self.proposed or ())

    @property
    def is_in_flight(self) -> bool:
        return self.proposed is not None

    def expand(self, broker_id: int) -> IsrState:
        return IsrState(self.committed, (*self.committed, broker_id))

    def shrink(self, lagging: set[int]) -> IsrState:
        return IsrState(
            self.committed, tuple(member for member in self.committed if member not in lagging)
        )

    def rollback(self) -> IsrState:
        """The state after the controller rejected the proposal."""
        return IsrState(self.committed)
