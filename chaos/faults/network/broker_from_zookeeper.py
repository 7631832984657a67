"""Brokers lose ZooKeeper and keep the other brokers and their clients."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.cut_links import CutLinks
from urteil.chaos.faults.base.fault import EXTERNAL, WITH_ZOOKEEPER
from urteil.chaos.observations import Link


class BrokerFromZookeeper(CutLinks):
    """After the session timeout the broker loses its registration, although it still serves."""

    name = "broker_from_zookeeper"
    about = "cut a broker from every ZooKeeper server, but not from brokers or clients"
    on_targets = (*WITH_ZOOKEEPER, EXTERNAL)
    sample = "controller"

    def choose(self, controls: Controls) -> list[Link]:
        chosen, zookeepers = (
            node_selectors.select_nodes(controls, self.arguments),
            controls.zookeepers,
        )
        return [
            link for link in controls.net.links() if link.src in chosen and link.dst in zookeepers
        ]
