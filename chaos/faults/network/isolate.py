"""Brokers that are cut from all other brokers, and optionally from ZooKeeper and the clients."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.cut_links import CutLinks
from urteil.chaos.observations import CLIENT, Link


class Isolate(CutLinks):
    """Cuts every link between the chosen nodes and the others, both ways.

    The chosen nodes still reach each other. With `brokers=false` and `zookeeper=true` a broker
    keeps the other brokers and loses its session.
    """

    name = "isolate"
    about = "cut a node from all brokers, optionally from ZooKeeper and the clients"
    options: ClassVar[dict[str, str]] = {
        "brokers": "cut from the other brokers (default true)",
        "zookeeper": "cut from ZooKeeper too (default false)",
        "clients": "cut from the clients too (default false)",
        "close": "break connections rather than stall them",
    }

    def choose(self, controls: Controls) -> list[Link]:
        inside = set(node_selectors.select_nodes(controls, self.arguments))
        outside: set[str] = set()
        if self.arguments.flag("brokers", True):
            outside |= set(controls.brokers)
        if self.arguments.flag("zookeeper"):
            outside |= set(controls.zookeepers)
        if self.arguments.flag("clients"):
            outside.add(CLIENT)
        return [link for link in controls.net.links() if _crosses(link, inside, outside - inside)]


def _crosses(link: Link, inside: set[str], outside: set[str]) -> bool:
    return (link.src in inside and link.dst in outside) or (
        link.src in outside and link.dst in inside
    )
