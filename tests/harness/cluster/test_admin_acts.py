"""Every administrative fault on a cluster of ours: its proof, its healing, the row of its act."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.waiting import until
from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS, Fault
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.journal import ADMIN_ACTS
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

TOPIC = "kept"
RECORDS = 50
ACTS_OF = {
    "add_partitions": {"add partitions"},
    "reassign": {"reassign"},
    "raise_replication": {"reassign"},
    "elect_preferred": {"reassign", "elect preferred"},
    "min_isr": {"config"},
    "retention": {"config"},
    "quota": {"quota"},
    "move_directories": {"move logs"},
    "topic_churn": {"create", "delete"},
    "recreate_topic": {"create", "delete"},
    "remove_broker": {"reassign"},
    "add_broker": {"reassign"},
    "upgrade": {"upgrade"},
}
NAMES = [
    pytest.param(name, marks=pytest.mark.thorough if name == "upgrade" else ()) for name in ACTS_OF
]
TARGETS = {"remove_broker": "controller", "add_broker": "b4", "upgrade": "all"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    steady = {"zookeeper.session.timeout.ms": "8000"}  # what stalls seems away, and is refused
    spec = ClusterSpec(brokers=4, older=True, log_dirs=2, config=steady)
    with Cluster(spec, UrteilTarget(), tmp_path_factory.mktemp("run")) as cluster:
        admin = cluster.controls().admin
        admin.create_topic(TOPIC, partitions=2, replication_factor=3)
        assert admin.fill(TOPIC, RECORDS) == RECORDS
        yield cluster


def acts(cluster: Cluster) -> list[dict[str, Any]]:
    path = cluster.run_dir / ADMIN_ACTS
    return [json.loads(line) for line in path.read_text().splitlines()]


def fault(name: str, target: str = "leader", topic: str = TOPIC) -> Fault:
    return FAULTS[name](FaultArguments(target=TARGETS.get(name, target), topic=topic, seed="7"))


@pytest.mark.parametrize("name", NAMES)
def test_admin_fault_acts_heals_and_is_logged(cluster: Cluster, name: str) -> None:
    controls = cluster.controls()
    before = len(acts(cluster))
    act = fault(name)
    proof = act.begin(controls)
    print(proof.text)
    assert proof.acted, proof.text
    print(act.heal(controls))
    controls.await_healthy(deadline_s=60)
    assert act.find_residual_effects(controls) == ""
    assert controls.admin.record_count(TOPIC) == RECORDS
    noted = acts(cluster)[before:]
    assert {row["act"] for row in noted} == ACTS_OF[name]
    assert all(row["outcome"] == "ok" for row in noted)
    assert all(row["invoke_ns"] <= row["complete_ns"] <= time.monotonic_ns() for row in noted)


def test_topic_deletion_is_not_awaited_while_a_replica_is_down(cluster: Cluster) -> None:
    """Healing does not wait for a broker that another fault's healing is to start."""
    controls = cluster.controls()
    act = fault("topic_churn")
    assert act.begin(controls).acted
    controls.kill("b4")
    act.heal(controls)
    controls.start("b4")
    controls.await_healthy(deadline_s=60)
    assert act.find_residual_effects(controls) == ""


def test_deleted_records_are_logged(cluster: Cluster) -> None:
    controls, topic = cluster.controls(), "shortened"
    controls.admin.create_topic(topic, partitions=1, replication_factor=3)
    controls.admin.fill(topic, RECORDS)
    act = fault("delete_records", topic=topic)
    assert act.begin(controls).text == f"{topic}: log starts 0 before, {RECORDS // 2} now"
    after = json.loads(acts(cluster)[-1]["after"])
    assert after == {name: {"0": RECORDS // 2} for name in ("offsets", "low_watermarks")}
    assert act.heal(controls).endswith("37 now")


def test_unfinished_reassignment_is_cancelled(cluster: Cluster) -> None:
    """Its new broker does not reach the leader; a reassignment not under way is reported so."""
    controls, topic = cluster.controls(), "stays"
    admin = controls.admin
    admin.create_topic(topic, partitions=2, replication_factor=3)
    before = admin.replicas(topic)
    (spare,) = set(controls.brokers) - set(before[0])
    links = controls.net.links_between([spare], [before[0][0]])
    controls.net.cut(links)
    try:
        admin.reassign(topic, {0: (*before[0][1:], spare)})
        assert admin.cancel_moves(topic, before) == [0]
    finally:
        controls.net.heal(links)
    until(lambda: set(admin.replicas(topic)[0]) == set(before[0]))
    assert json.loads(acts(cluster)[-1]["after"]) == {"0": list(before[0]), "1": None}
    controls.await_healthy(deadline_s=60)


def test_unclean_election_elects_a_living_replica(cluster: Cluster) -> None:
    controls, topic = cluster.controls(), "lax"
    config = {"min.insync.replicas": "1"}
    controls.admin.create_topic(topic, partitions=1, replication_factor=2, config=config)
    view = controls.partition(topic, 0)
    assert view is not None
    assert view.leader is not None
    (follower,) = (node for node in view.replicas if node != view.leader)
    controls.kill(follower)
    until(lambda: controls.partition(topic, 0).isr == (view.leader,))  # type: ignore[union-attr]
    controls.kill(view.leader)
    controls.start(follower)
    act = fault("elect_unclean", topic=topic)
    proof = act.begin(controls)
    assert proof.acted, proof.text
    assert acts(cluster)[-1]["act"] == "elect unclean"
    assert acts(cluster)[-1]["subject"] == f"{topic}-0"
    assert controls.partition(topic, 0).leader == follower  # type: ignore[union-attr]
    controls.start(view.leader)
    controls.await_healthy(deadline_s=60)


def test_request_to_an_absent_broker_is_repeated(cluster: Cluster) -> None:
    controls = cluster.controls()
    controls.stop("b1")
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(controls.admin.directories, TOPIC)
        controls.start("b1")
        answers = asked.result(timeout=60)
    controls.await_healthy(deadline_s=60)
    assert {partition for _, partition in answers} == set(controls.admin.replicas(TOPIC))


def test_rejected_act_raises_and_is_logged(cluster: Cluster) -> None:
    admin = cluster.controls().admin
    with pytest.raises(ActFailed, match="InvalidReplicationFactor"):
        admin.create_topic("too-many", partitions=1, replication_factor=9)
    assert acts(cluster)[-1]["outcome"] == "info"
    assert "InvalidReplicationFactor" in acts(cluster)[-1]["after"]


def test_decided_transactions_have_their_markers(cluster: Cluster) -> None:
    assert cluster.controls().admin.decided_transactions() == []
