"""The pytest plugin: a cluster under chaos for anybody's tests.

It loads in every pytest of its environment, so nothing heavy is imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from urteil.chaos.by_hand import ByHand
    from urteil.lab import ClusterHandle, History, Lab


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("urteil", "chaos on clusters that speak the Kafka protocol")
    group.addoption("--urteil-cluster", metavar="NAME", help="use the standing cluster NAME")
    group.addoption(
        "--urteil-target",
        default="urteil",
        help="urteil (default), kafka[:VERSION] or mix:KIND,KIND,...",
    )
    group.addoption(
        "--urteil-runtime", choices=["process", "docker"], help="where nodes run (process)"
    )
    group.addoption(
        "--urteil-brokers", type=int, help="brokers of a cluster (3, or as many as the mix)"
    )
    group.addoption("--urteil-zookeepers", type=int, default=1, help="ZooKeeper servers (1)")
    group.addoption("--urteil-seed", type=int, default=1, help="seed of every random choice (1)")
    group.addoption("--urteil-out", default="runs", help="folder of the runs (runs)")
    group.addoption(
        "--urteil-engine",
        choices=["auto", "duckdb", "spark"],
        default="auto",
        help="engine of verdicts (auto)",
    )
    parser.addini(
        "urteil_short_names",
        "also offer the fixtures as cluster, nemesis and history",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getini("urteil_short_names"):
        config.pluginmanager.register(_ShortNames(), "urteil-short-names")


@pytest.fixture
def urteil_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """What the three fixtures of one test share: its run folder, its cluster, its seed."""
    from urteil.harness.targets.mix import size_of
    from urteil.lab import Lab, Options

    option = request.config.getoption
    lab = Lab(
        request.node.name,
        Options(
            standing=option("--urteil-cluster"),
            target=option("--urteil-target"),
            runtime=option("--urteil-runtime") or "process",
            brokers=option("--urteil-brokers") or size_of(option("--urteil-target"), 3),
            zookeepers=option("--urteil-zookeepers"),
            seed=option("--urteil-seed"),
            out=option("--urteil-out"),
            engine=option("--urteil-engine"),
        ),
    )
    try:
        yield lab
    finally:
        lab.close()


@pytest.fixture
def urteil_cluster(urteil_lab: Lab) -> ClusterHandle:
    """A running cluster of this test's own, or the standing one of `--urteil-cluster`."""
    return urteil_lab.cluster()


@pytest.fixture
def urteil_nemesis(urteil_lab: Lab) -> ByHand:
    """Injects faults around a block: `with urteil_nemesis.fault("crash", "leader", topic="t"):`."""
    return urteil_lab.nemesis()


@pytest.fixture
def urteil_history(urteil_lab: Lab) -> History:
    """Runs the lab's own clients beside the test, and judges what became of their records."""
    return urteil_lab.history()


class _ShortNames:
    """The fixtures under short names, for projects that ask for them."""

    @pytest.fixture
    def cluster(self, urteil_cluster: ClusterHandle) -> ClusterHandle:
        return urteil_cluster

    @pytest.fixture
    def nemesis(self, urteil_nemesis: ByHand) -> ByHand:
        return urteil_nemesis

    @pytest.fixture
    def history(self, urteil_history: History) -> History:
        return urteil_history
