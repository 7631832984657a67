"""Three brokers lose their leaders in turn; no acknowledged record is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.nodes import Nodes
from tests.broker.traffic import Traffic, read_all
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import until

PARTITIONS, TOPICS = 3, ("orders",)


@pytest.fixture
def nodes(tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str) -> Iterator[Nodes]:
    config = {
        "default_replication_factor": "3",
        "num_partitions": str(PARTITIONS),
        "min_insync_replicas": "2",
    }
    with Nodes(tmp_path, zookeeper, chroot, 3, **config) as started:
        yield started


def full_isr(nodes: Nodes) -> bool:
    return all(nodes.isr_size("orders", index) == 3 for index in range(PARTITIONS))


@pytest.mark.timeout(300)
def test_leader_crashes_lose_no_acknowledged_record(nodes: Nodes) -> None:
    with Traffic(nodes.bootstrap, TOPICS) as traffic:
        traffic.await_more(300)
        for _ in range(2):
            leader = nodes.state("orders", 0)["leader"]
            nodes.kill(leader)
            traffic.await_more(300)
            # what was under way to other leaders may have made up the number
            until(lambda: nodes.state("orders", 0)["leader"] != leader, "another leader")  # noqa: B023
            nodes.start(leader)
            until(lambda: full_isr(nodes), "ISR full again")
        leader = nodes.state("orders", 0)["leader"]
        assert nodes.stop(leader) == 0
        assert "controlled shutdown succeeded" in nodes.log(leader).read_text()
        traffic.await_more(300)
        nodes.start(leader)
        until(lambda: full_isr(nodes), "ISR full again")
    records = read_all(nodes.bootstrap, TOPICS, PARTITIONS)
    assert {v: w for v, w in traffic.acknowledged.items() if records.get(v) != [w]} == {}


@pytest.mark.timeout(300)
def test_restart_within_the_session_registers_again(nodes: Nodes) -> None:
    with Traffic(nodes.bootstrap, TOPICS) as traffic:
        traffic.await_more(100)
        before = nodes.registration(2)
        nodes.kill(2)
        nodes.start(2)
        until(lambda: nodes.registration(2) not in (None, before), "registered anew")
        until(lambda: full_isr(nodes), "ISR full again")
        traffic.await_more(100)
    records = read_all(nodes.bootstrap, TOPICS, PARTITIONS)
    assert {v: w for v, w in traffic.acknowledged.items() if records.get(v) != [w]} == {}


def test_clean_stop_keeps_high_watermarks(nodes: Nodes) -> None:
    """The controller stops its replicas first. Alone afterwards, below min ISR, the broker could
    not recover high watermarks from others."""
    with Traffic(nodes.bootstrap, TOPICS) as traffic:
        traffic.await_more(100)
    nodes.stop(1)
    checkpoint = nodes.log(1).with_name("data1") / "replication-offset-checkpoint"
    rows = [line.split() for line in checkpoint.read_text().splitlines()[2:]]
    known = {int(partition): int(offset) for topic, partition, offset in rows if topic == "orders"}
    assert len(known) == PARTITIONS
    assert min(known.values()) > 0
