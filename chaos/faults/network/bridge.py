"""Two halves of the brokers, or of the quorum, cannot reach each other; one node reaches both."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.cut_links import CutLinks
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link


class Bridge(CutLinks):
    """The target is the bridge. The seed divides the other brokers into halves; those of a
    controller with a node of its own are the other controllers."""

    name = "bridge"
    about = "cut the brokers into two halves that are connected by one broker alone"
    selectors = "a role or a node that selects one broker or controller: the bridge"

    def choose(self, controls: Controls) -> list[Link]:
        bridge = node_selectors.select_nodes(controls, self.arguments)
        is_quorum = set(bridge) <= {*controls.voters}
        others = [
            n for n in (controls.voters if is_quorum else controls.brokers) if n not in bridge
        ]
        if len(bridge) != 1 or len(others) < 2:
            raise NoTarget(f"a bridge is one of at least three nodes, not {', '.join(bridge)}")
        self.arguments.random().shuffle(others)
        middle = len(others) // 2
        return list(controls.net.links_between(others[:middle], others[middle:]))
