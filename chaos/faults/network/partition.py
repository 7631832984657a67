"""Directed links are cut (`follower->leader`, `b1<->b2`): connections stall and stay open."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.cut_links import CutLinks
from urteil.chaos.observations import Link


class Partition(CutLinks):
    """Stalls the requests of one side to the other, one way or both ways."""

    name = "partition"
    about = "cut directed links, one-way (left->right) or two-way (left<->right)"
    selectors = "left->right or left<->right, each side a role or a node"
    sample = "leader<->follower"
    options: ClassVar[dict[str, str]] = {
        "direction": "one-way or two-way, instead of the arrow in the target",
        "close": "break connections rather than stall them",
        "answers_only": "requests arrive, their responses do not (default false)",
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.direction = arguments.options.get("direction", "one-way")
        if self.direction not in ("one-way", "two-way"):
            raise ValueError(f"unknown direction {self.direction!r}: give one-way or two-way")

    def choose(self, controls: Controls) -> list[Link]:
        chosen = node_selectors.select_links(controls, self.arguments)
        if self.direction == "one-way":
            return chosen
        back = {Link(link.dst, link.src) for link in chosen}
        return [link for link in controls.net.links() if link in {*chosen, *back}]
