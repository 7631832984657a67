"""The state of a standing cluster, for programs on its machine."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.cluster.quorum_state import quorum_state
from urteil.harness.cluster.zookeeper_state import ZooKeeperState
from urteil.harness.standing.state_file import StandingCluster
from urteil.harness.targets import parse_target
from urteil.harness.targets.mix import kinds_of


def state_of(cluster: StandingCluster) -> ClusterState:
    """ZooKeeper's, or that of the controllers' metadata logs. It is not started."""
    if cluster.zookeeper:
        return ZooKeeperState(cluster.zookeeper)
    logs = {node: Path(folder) for node, folder in cluster.metadata_logs.items()}
    kind, *_ = kinds_of(parse_target(cluster.target), cluster.brokers)
    return quorum_state(lambda: logs, kind.version)
