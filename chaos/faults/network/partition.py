"""Directed links are cut (`follower->leader`, `b1<->b2`): connections stall and stay open."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_options import text
from urteil.chaos.faults.base.cut_links import ANSWERS_ONLY, CutLinks
from urteil.chaos.observations import Link


class Partition(CutLinks):
    """Stalls the requests of one side to the other, one way or both ways."""

    name = "partition"
    about = "cut directed links, one-way (left->right) or two-way (left<->right)"
    selectors = "left->right or left<->right, each side a role or a node"
    sample = "leader<->follower"
    direction: str = text(
        "one-way", "instead of the arrow in the target", choices=("one-way", "two-way")
    )
    answers_only: bool = ANSWERS_ONLY

    def choose(self, controls: Controls) -> list[Link]:
        chosen = node_selectors.select_links(controls, self.arguments)
        if self.direction == "one-way":
            return chosen
        back = {Link(link.dst, link.src) for link in chosen}
        return [link for link in controls.net.links() if link in {*chosen, *back}]
