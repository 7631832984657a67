"""Clients cannot reach a broker that every other node reaches."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.cut_links import ANSWERS_ONLY, CutLinks
from urteil.chaos.observations import CLIENT, Link


class ClientFromLeader(CutLinks):
    """The leader stays leader, since the cluster detects no failure. Clients wait or give up."""

    name = "client_from_leader"
    about = "cut the clients from a broker that all other nodes still reach"
    answers_only: bool = ANSWERS_ONLY

    def choose(self, controls: Controls) -> list[Link]:
        chosen = node_selectors.select_nodes(controls, self.arguments)
        return [link for link in controls.net.links() if link.src == CLIENT and link.dst in chosen]
