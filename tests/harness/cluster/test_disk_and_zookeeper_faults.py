"""Faults of disks and ZooKeeper on a living cluster: each shows its proof, and its healing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS, Fault, Proof
from urteil.chaos.observations import LabFailure, NodeState
from urteil.harness.cluster import Cluster
from urteil.harness.cluster.session_expiry import SessionGone, end_session, password
from urteil.harness.runtimes.disks import can_mount
from urteil.harness.runtimes.slow_disk import SlowDisk, find_tracer
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

TOPIC = "kept"
SPEC = ClusterSpec(log_dirs=2, config={"log.segment.bytes": "4096"})
HEALTHY_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(SPEC, UrteilTarget(), tmp_path_factory.mktemp("disks")) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        kept = {TOPIC: {"num_partitions": 2, "replication_factor": 3}}
        admin.create_topics(kept, wait_for_metadata=True)
        admin.close()
        yield cluster


def send(cluster: Cluster, count: int = 60) -> int:
    """Records of 200 bytes one by one, acknowledged by all; the offset of the last one."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
    try:
        outcomes = [
            producer.send(TOPIC, value=bytes(200), partition=0).get(60) for _ in range(count)
        ]
    finally:
        producer.close(timeout=0)  # one that is left open waits wherever it is collected
    return int(outcomes[-1].offset)


def played(cluster: Cluster, name: str, target: str, **options: str | float | bool) -> Fault:
    """Begin the fault, heal it, and wait until the cluster is whole; nothing of it remains."""
    fault = FAULTS[name](FaultArguments(target=target, topic=TOPIC, seed="3", options=options))
    controls = cluster.controls()
    try:
        proof: Proof = fault.begin(controls)
        assert proof.acted, proof.text
    finally:
        outcomes = fault.heal(controls)
    controls.await_healthy(deadline_s=HEALTHY_S)
    assert fault.find_residual_effects(controls) == "", outcomes
    return fault


def test_each_disk_fault_acts_and_nothing_acknowledged_is_lost(cluster: Cluster) -> None:
    before = send(cluster)
    played(cluster, "power_cut", "leader")
    played(cluster, "segment_damaged", "follower", how="cut")
    played(cluster, "segment_damaged", "follower", up=True)
    played(cluster, "disk_emptied", "follower")
    assert send(cluster, 5) == before + 5


def test_lost_disk_loses_only_its_own_replicas(cluster: Cluster) -> None:
    controls = cluster.controls()
    before = {partition.partition: partition.leader for partition in controls.partitions(TOPIC)}
    fault = FAULTS["disk_gone"](FaultArguments(target=before[0] or "", topic=TOPIC))
    assert fault.begin(controls).acted
    send(cluster, 5)
    assert controls.status(before[0] or "").state is NodeState.RUNNING
    fault.heal(controls)
    controls.await_healthy(deadline_s=HEALTHY_S)


def test_slow_disk_delays_writes_without_other_effect(cluster: Cluster) -> None:
    controls = cluster.controls()
    fault = FAULTS["disk_slow"](
        FaultArguments(target="leader", topic=TOPIC, options={"delay_ms": 150.0})
    )
    proof = fault.begin(controls)
    assert proof.acted, proof.text
    leader = controls.status(fault.targets[0])
    before, began = controls.disks.delayed_writes(leader.node) or 0, time.monotonic()
    send(cluster, 4)
    assert time.monotonic() - began > 4 * 0.15
    assert (controls.disks.delayed_writes(leader.node) or 0) >= before + 4
    fault.heal(controls)
    assert fault.find_residual_effects(controls) == ""
    assert find_tracer(leader.pid or 0) == 0
    assert controls.status(leader.node) == leader


def test_a_process_that_cannot_be_traced_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabFailure, match="cannot be attached to process 0"):
        SlowDisk(0, [tmp_path], 100)


@pytest.mark.parametrize(
    "name", ["disk_full", *(["disk_readonly"] if can_mount() else [])]
)  # fmt: skip
def test_unwritable_disk_is_taken_offline(cluster: Cluster, name: str) -> None:
    before = send(cluster, 5)
    controls = cluster.controls()
    fault = FAULTS[name](FaultArguments(target="leader", topic=TOPIC))
    assert fault.begin(controls).acted
    assert send(cluster, 30) == before + 30
    fault.heal(controls)
    controls.await_healthy(deadline_s=HEALTHY_S)
    assert fault.find_residual_effects(controls) == ""


def test_ended_session_elects_another_controller(cluster: Cluster) -> None:
    played(cluster, "session_expired", "controller")
    played(cluster, "session_expired", "leader")
    played(cluster, "controller_deleted", "controller")


def test_session_password_is_derived_from_the_id(cluster: Cluster) -> None:
    client = cluster.zk.client_id
    assert client is not None
    assert password(client[0]) == client[1]
    with pytest.raises(SessionGone, match="session 0x123 is gone"):
        end_session(cluster.plan.direct_address("zk1"), 0x123, timeout_s=5)


def test_reads_survive_the_end_of_the_lab_s_own_session(cluster: Cluster) -> None:
    client = cluster.zk.client_id
    assert client is not None
    end_session(cluster.plan.direct_address("zk1"), client[0], timeout_s=5)
    assert cluster.state.topics() == [TOPIC]
    assert set(cluster.state.registrations()) == {"b1", "b2", "b3"}
    assert cluster.zk.client_id != client


def test_node_without_a_session_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    keeper = cluster.controls().zookeeper_admin
    assert keeper.session("b9") is None
    assert (tenure := keeper.controller_term()) is not None
    assert str(tenure).startswith(f"{tenure.broker} since zxid 0x")
