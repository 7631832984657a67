"""A cluster of brokers and ZooKeeper servers with one proxy a directed link."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.cluster.cluster import Cluster
from urteil.harness.cluster.external import ExternalCluster
from urteil.harness.scenario import Scenario
from urteil.harness.targets import parse_target
from urteil.harness.targets.external import PREFIX

__all__ = ["Cluster", "ExternalCluster", "open_cluster"]


def open_cluster(scenario: Scenario, run_dir: Path) -> Cluster | ExternalCluster:
    """The scenario's cluster, not started yet. Raises ValueError for a bad target."""
    if scenario.target.startswith(PREFIX):
        return ExternalCluster(Path(scenario.target.removeprefix(PREFIX)), run_dir)
    return Cluster(
        scenario.cluster,
        parse_target(scenario.target),
        run_dir,
        mutant=scenario.mutant,
        runtime=scenario.runtime,
    )
