"""A cluster of brokers and ZooKeeper servers with one proxy for each directed link."""

from __future__ import annotations

from pathlib import Path

from urteil.chaos.topology import WEST, Layout
from urteil.harness.cluster.access import Access
from urteil.harness.cluster.cluster import Cluster
from urteil.harness.cluster.external import ExternalCluster
from urteil.harness.scenario import FIRST_IDS, Scenario
from urteil.harness.targets import parse_target
from urteil.harness.targets.external import PREFIX

__all__ = ["LINES", "Cluster", "ExternalCluster", "open_cluster", "open_second"]

LINES = "lines"
"""The folder of a run with the lines that its brokers executed."""


def open_cluster(scenario: Scenario, run_dir: Path) -> Cluster | ExternalCluster:
    """The scenario's first cluster, not started yet. Raises ValueError for a bad target."""
    if scenario.target.startswith(PREFIX):
        return ExternalCluster(Path(scenario.target.removeprefix(PREFIX)), run_dir)
    return Cluster(
        scenario.cluster,
        parse_target(scenario.target),
        run_dir,
        launcher=_launcher(scenario, run_dir),
        runtime=scenario.runtime,
        hosts=scenario.hosts,
        client_hosts=scenario.client_hosts,
        access=Access(layout=Layout(wan=scenario.second is not None)),
    )


def open_second(scenario: Scenario, run_dir: Path) -> Cluster | None:
    """The scenario's second cluster in the folder `west/` of the run, not started yet; None without
    one. Raises ValueError for a runtime or a target that cannot have two."""
    if scenario.second is None:
        return None
    if scenario.runtime != "process" or scenario.target.startswith(PREFIX):
        raise ValueError(
            f"{scenario.name} has two clusters, which run as processes of the lab: leave out "
            "--runtime, and give a --target that the lab starts"
        )
    first = FIRST_IDS[WEST]
    return Cluster(
        scenario.second,
        parse_target(scenario.target),
        run_dir / WEST,
        launcher=_launcher(scenario, run_dir) if scenario.coverage else (),
        access=Access(layout=Layout(first_broker_id=first, first_zookeeper_id=first)),
    )


def _launcher(scenario: Scenario, run_dir: Path) -> tuple[str, ...]:
    """The module that starts our broker with a bug, or with coverage probes."""
    if scenario.coverage:
        return ("urteil.suites.coverage.launch", str((run_dir / LINES).resolve()))
    return () if scenario.mutant is None else ("urteil.suites.mutants.launch", scenario.mutant)
