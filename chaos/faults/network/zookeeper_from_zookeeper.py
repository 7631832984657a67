"""ZooKeeper servers are cut from each other; brokers reach both sides."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.faults.base.cut_links import CutLinks
from urteil.chaos.faults.base.fault import EXTERNAL, WITH_ZOOKEEPER
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link


class ZookeeperFromZookeeper(CutLinks):
    """Partitions an ensemble of three or more servers; brokers still reach every server."""

    name = "zookeeper_from_zookeeper"
    about = "cut ZooKeeper servers from the rest of their ensemble, but not from the brokers"
    on_targets = (*WITH_ZOOKEEPER, EXTERNAL)
    selectors = "zookeeper_leader, zookeeper_minority, zookeeper_majority or zk1, ..."
    sample = "zookeeper_leader"

    def choose(self, controls: Controls) -> list[Link]:
        inside = node_selectors.select_nodes(controls, self.arguments)
        outside = [node for node in controls.zookeepers if node not in inside]
        if not outside or not set(inside) <= set(controls.zookeepers):
            raise NoTarget(f"{self.arguments.target} selects all ZooKeeper servers: leave one out")
        return list(controls.net.links_between(inside, outside))
