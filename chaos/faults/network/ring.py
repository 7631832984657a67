"""A ring of majorities: every broker reaches a majority, and no two brokers the same one."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.cut_links import CutLinks
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link


class Ring(CutLinks):
    """The seed orders the brokers, or KRaft's controllers, in a ring. Each reaches only as many
    neighbours as form a majority with itself."""

    name = "ring"
    about = "cut links so that every broker reaches a majority, and no two brokers the same one"
    selectors = "all or quorum"
    sample = "all"

    def choose(self, controls: Controls) -> list[Link]:
        if self.arguments.target not in ("all", "quorum"):
            raise NoTarget(
                "a ring includes all brokers or the quorum: give the target all or quorum, not "
                f"{self.arguments.target}"
            )
        ring = node_selectors.select_nodes(controls, self.arguments)
        if len(ring) < 3:
            raise NoTarget(f"{len(ring)} nodes are too few for a ring of three")
        self.arguments.random().shuffle(ring)
        cut = {Link(a, b) for a in ring for b in ring if b not in _reachable(ring, a)}
        return [link for link in controls.net.links() if link in cut]


def _reachable(ring: list[str], node: str) -> set[str]:
    """A majority of consecutive brokers with `node` in the middle, or just before it."""
    count = len(ring) // 2 + 1
    first = ring.index(node) - (count - 1) // 2
    return {ring[(first + at) % len(ring)] for at in range(count)}
