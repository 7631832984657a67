"""The operations on packets between the machines of a cluster that chaos may call.

`chaos/controls.py` has the rules of all calls. A rule of a machine's packet filter matches
addresses and ports of TCP, so it distinguishes links by the machine of their source and by their
destination. An arrow denotes packets here: `b1->b2` are those that the machine of b1 sends to that
of b2 for requests of b1 to b2, and for answers of b1 to b2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from urteil.chaos.observations import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketCount:
    """Packets that the rules of one direction matched, and those that they dropped."""

    seen: int
    lost: int


class PacketControls(Protocol):
    """The packet filters of the machines."""

    def crossing_links(self, links: Sequence[Link]) -> Sequence[Link]:
        """The links whose packets cross from one machine of the cluster to another."""
        ...

    def disturbed_by(self, links: Sequence[Link]) -> Sequence[Link]:
        """The links that suffer when packets of these directions are lost: those in the opposite
        direction, and those of other nodes of the same machine to the same node, too."""
        ...

    def drop(
        self, links: Sequence[Link], *, percent: int = 100, reject: bool = False, owner: str
    ) -> None:
        """Drop a share of the packets of these directions; with `reject`, requests are answered by
        a reset. LabFailure, with host and remedy, for a machine whose filter cannot be used. The
        rules end with `restore`, and with the lab."""
        ...

    def counts(self, *, owner: str) -> Mapping[str, PacketCount]:
        """Direction to the packets of `owner` so far. Empty after `restore`."""
        ...

    def restore(self, *, owner: str) -> None:
        """Remove the rules of `owner`. Repeatable."""
        ...
