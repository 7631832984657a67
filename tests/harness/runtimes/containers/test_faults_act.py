"""Every fault acts on an idle cluster of containers, proves it, and leaves nothing when healed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.harness.cluster import Cluster
from urteil.harness.fault_check import (
    BROKERS,
    RECOVERY_S,
    TOPIC,
    ZOOKEEPERS,
    check_fault,
    prepare,
)
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.disks import can_mount
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target

FAMILIES = ("network", "process", "container", "disk")
"""Others have tests of their own, with what they need beside an idle cluster."""
BY_MOUNTING = () if can_mount() else ("disk_readonly",)
AS_ELSEWHERE = {"crash_loop", "rolling_restart", "shutdown"} | {
    name
    for name, kind in FAULTS.items()
    if kind.family == "network" and name not in ("partition", "latency")
}
"""What acts here as it does on processes, the faults of Toxiproxy above all: thorough."""
SMALL_SEGMENTS = {"log.segment.bytes": "4096"}
HERE = [
    pytest.param(name, marks=[pytest.mark.thorough] if name in AS_ELSEWHERE else [])
    for name, kind in FAULTS.items()
    if kind.family in FAMILIES and kind.sample and name not in BY_MOUNTING
    if not kind.unsupported_reason(runtime="docker", target="urteil")
]


@pytest.fixture(scope="module")
def cluster(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    spec = ClusterSpec(brokers=BROKERS, zookeepers=ZOOKEEPERS, config=SMALL_SEGMENTS)
    folder = tmp_path_factory.mktemp("faults")
    with Cluster(spec, parse_target("urteil"), folder, runtime="docker") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def controls(cluster: Cluster) -> Controls:
    its_controls = cluster.controls()
    prepare(cluster.bootstrap, its_controls.topics())
    its_controls.await_healthy(deadline_s=RECOVERY_S)
    return its_controls


@pytest.mark.parametrize("name", HERE)
def test_a_fault_shows_that_it_acted_and_that_it_healed(controls: Controls, name: str) -> None:
    checked = check_fault(controls, name)
    assert checked.acted, checked.proof
    assert checked.proof
    assert checked.healed, checked.healing
    assert checked.healing


@pytest.mark.parametrize(
    "up", [False, *([pytest.param(True, marks=pytest.mark.thorough)] if can_mount() else [])]
)
def test_closed_segment_is_damaged_on_disk(cluster: Cluster, controls: Controls, up: bool) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        for _ in range(60):  # one by one: a batch each, several segments
            producer.send(TOPIC, value=bytes(200)).get(20)
    fault = FAULTS["segment_damaged"](
        FaultArguments(target="follower", topic=TOPIC, options={"up": up})
    )
    proof = fault.begin(controls)
    assert proof.acted, proof.text
    fault.heal(controls)
    controls.await_healthy(deadline_s=RECOVERY_S)
    assert fault.find_residual_effects(controls) == ""
