"""Two halves that do not see each other, and one broker that sees both."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.partition import CutLinks
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link


class Bridge(CutLinks):
    """The target is the bridge; the seed deals the others into halves."""

    name = "bridge"
    about = "two halves of the brokers cut from each other, both with one broker that sees all"
    selectors = "a role or a node that means one broker: the bridge"
    options: ClassVar[dict[str, str]] = {"close": "break connections rather than stall them"}

    def choose(self, controls: Controls) -> list[Link]:
        bridge = node_selectors.select_nodes(controls, self.arguments)
        others = [node for node in controls.brokers if node not in bridge]
        if len(bridge) != 1 or len(others) < 2:
            raise NoTarget(f"a bridge is one of three brokers or more, not {', '.join(bridge)}")
        self.arguments.random().shuffle(others)
        middle = len(others) // 2
        return list(controls.net.links_between(others[:middle], others[middle:]))
