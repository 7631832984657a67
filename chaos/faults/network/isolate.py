"""Nodes that are cut from all brokers, and optionally from metadata nodes and the clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_options import flag
from urteil.chaos.faults.base.cut_links import CutLinks
from urteil.chaos.observations import CLIENT, Link


class Isolate(CutLinks):
    """Cuts every link between the chosen nodes and the others, both ways.

    The chosen nodes still reach each other. Controllers with nodes of their own are cut from the
    other controllers, too. With `brokers=false` and `zookeeper=true` a broker
    keeps the other brokers and loses its session.
    """

    name = "isolate"
    about = "cut a node from all brokers, optionally from ZooKeeper and the clients"
    brokers: bool = flag("cut from the other brokers", default=True)
    zookeeper: bool = flag("cut from ZooKeeper, or from KRaft's controllers, too")
    clients: bool = flag("cut from the clients too")

    @classmethod
    def acts_on_zookeeper(cls, selector: str, options: Mapping[str, Any]) -> bool:
        """Whether only links to ZooKeeper are cut: neither those to brokers nor to clients."""
        others = options.get("brokers", True) or options.get("clients", False)
        return not others or super().acts_on_zookeeper(selector, options)

    def choose(self, controls: Controls) -> list[Link]:
        inside = set(node_selectors.select_nodes(controls, self.arguments))
        outside: set[str] = set()
        if self.brokers:
            outside |= set(controls.brokers)
        if self.zookeeper or inside & {*controls.metadata_nodes} & {*controls.voters}:
            outside |= set(controls.metadata_nodes)
        if self.clients:
            outside.add(CLIENT)
        return [link for link in controls.net.links() if _crosses(link, inside, outside - inside)]


def _crosses(link: Link, inside: set[str], outside: set[str]) -> bool:
    return (link.src in inside and link.dst in outside) or (
        link.src in outside and link.dst in inside
    )
