"""Brokers that lose ZooKeeper and keep their peers and their clients."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.partition import CutLinks
from urteil.chaos.observations import Link


class BrokerFromZookeeper(CutLinks):
    """Beyond the session's timeout the broker's registration goes, though it serves."""

    name = "broker_from_zookeeper"
    about = "cut a broker from every ZooKeeper server, not from brokers nor clients"
    sample = "controller"
    options: ClassVar[dict[str, str]] = {"close": "break connections rather than stall them"}

    def choose(self, controls: Controls) -> list[Link]:
        chosen, keepers = node_selectors.select_nodes(controls, self.arguments), controls.zookeepers
        return [one for one in controls.net.links() if one.src in chosen and one.dst in keepers]
