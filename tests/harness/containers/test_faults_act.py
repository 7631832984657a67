"""Every fault acts on an idle cluster of containers, proves it, and leaves nothing when healed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from urteil.chaos.controls import Controls
from urteil.chaos.faults import FAULTS
from urteil.harness.cluster import Cluster
from urteil.harness.containers.engine import Engine
from urteil.harness.fault_check import BROKERS, RECOVERY_S, ZOOKEEPERS, check_fault, prepare
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target

FAMILIES = ("network", "process", "container")
"""Others have tests of their own, with what they need beside an idle cluster."""
HERE = [
    name
    for name, kind in FAULTS.items()
    if kind.family in FAMILIES and not kind.unfit(runtime="docker", target="urteil")
]


@pytest.fixture(scope="module")
def controls(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controls]:
    spec = ClusterSpec(brokers=BROKERS, zookeepers=ZOOKEEPERS)
    folder = tmp_path_factory.mktemp("faults")
    with Cluster(spec, parse_target("urteil"), folder, runtime="docker") as cluster:
        found = cluster.controls()
        prepare(cluster.bootstrap, found.topics())
        found.await_healthy(deadline_s=RECOVERY_S)
        yield found


@pytest.mark.parametrize("name", HERE)
def test_a_fault_shows_that_it_acted_and_that_it_healed(controls: Controls, name: str) -> None:
    checked = check_fault(controls, name)
    assert checked.acted, checked.proof
    assert checked.proof
    assert checked.healed, checked.healing
    assert checked.healing
