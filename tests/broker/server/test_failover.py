"""Three brokers lose their leaders one after another, and nothing that was acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.broker.server.nodes import Nodes, until
from tests.broker.zookeeper.server import ZooKeeperServer

PARTITIONS = 3


@pytest.fixture
def nodes(tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str) -> Iterator[Nodes]:
    config = {
        "default_replication_factor": "3",
        "num_partitions": str(PARTITIONS),
        "min_insync_replicas": "2",
    }
    with Nodes(tmp_path, zookeeper, chroot, 3, **config) as started:
        yield started


class Traffic:
    """One idempotent producer on a thread; what was acknowledged, where."""

    def __init__(self, nodes: Nodes) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=nodes.bootstrap,
            acks="all",
            enable_idempotence=True,
            max_block_ms=30_000,
            delivery_timeout_ms=60_000,
        )
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(30)
        self._producer.close()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.002):
            value = b"%d" % number
            number += 1
            future = self._producer.send("orders", value)
            future.add_callback(self._acknowledge, value)

    def _acknowledge(self, value: bytes, where: object) -> None:
        self.acknowledged[value] = (where.partition, where.offset)  # type: ignore[attr-defined]

    def await_more(self, count: int) -> None:
        goal = len(self.acknowledged) + count
        until(lambda: len(self.acknowledged) >= goal, f"{count} more acknowledgements", 40)


def read_all(nodes: Nodes) -> dict[bytes, list[tuple[int, int]]]:
    consumer = KafkaConsumer(bootstrap_servers=nodes.bootstrap, auto_offset_reset="earliest")
    partitions = [TopicPartition("orders", index) for index in range(PARTITIONS)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    found: dict[bytes, list[tuple[int, int]]] = {}
    while any(consumer.position(one) < ends[one] for one in partitions):
        for records in consumer.poll(500).values():
            for record in records:
                found.setdefault(record.value, []).append((record.partition, record.offset))
    consumer.close()
    return found


def full_isr(nodes: Nodes) -> bool:
    return all(nodes.isr_size("orders", index) == 3 for index in range(PARTITIONS))


@pytest.mark.timeout(180)
def test_leaders_die_and_nothing_acknowledged_is_lost(nodes: Nodes) -> None:
    with Traffic(nodes) as traffic:
        traffic.await_more(300)
        for _ in range(2):
            leader = nodes.state("orders", 0)["leader"]
            nodes.kill(leader)
            traffic.await_more(300)
            assert nodes.state("orders", 0)["leader"] != leader
            nodes.start(leader)
            until(lambda: full_isr(nodes), "ISR full again", 30)
        leader = nodes.state("orders", 0)["leader"]
        assert nodes.stop(leader) == 0
        assert "controlled shutdown succeeded" in nodes.log(leader).read_text()
        traffic.await_more(300)
        nodes.start(leader)
        until(lambda: full_isr(nodes), "ISR full again", 30)
    found = read_all(nodes)
    assert {v: w for v, w in traffic.acknowledged.items() if found.get(v) != [w]} == {}


@pytest.mark.timeout(120)
def registration(nodes: Nodes) -> int | None:
    """The zxid that made broker 2's node; None while there is none, after its session's end."""
    found = nodes.zk.exists("/brokers/ids/2")
    return None if found is None else int(found.czxid)


def test_a_restart_within_the_session_registers_again(nodes: Nodes) -> None:
    with Traffic(nodes) as traffic:
        traffic.await_more(100)
        before = registration(nodes)
        nodes.kill(2)
        nodes.start(2)
        until(lambda: registration(nodes) not in (None, before), "registered anew")
        until(lambda: full_isr(nodes), "ISR full again", 30)
        traffic.await_more(100)
    found = read_all(nodes)
    assert {v: w for v, w in traffic.acknowledged.items() if found.get(v) != [w]} == {}


def test_a_broker_that_goes_down_in_order_keeps_its_high_watermarks(nodes: Nodes) -> None:
    """The controller stops its replicas first. Alone afterwards, below min ISR, it could not learn
    them anew."""
    with Traffic(nodes) as traffic:
        traffic.await_more(100)
    nodes.stop(1)
    checkpoint = nodes.log(1).with_name("data1") / "replication-offset-checkpoint"
    rows = [line.split() for line in checkpoint.read_text().splitlines()[2:]]
    known = {int(partition): int(offset) for topic, partition, offset in rows if topic == "orders"}
    assert len(known) == PARTITIONS
    assert min(known.values()) > 0
