"""Two brokers in two racks: consumers read from their own (KIP-392)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.broker.nodes import STEADY, Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.conformance.fetching import fetch
from tests.conformance.side import Side
from tests.waiting import until

LEADER, FOLLOWER = 1, 2
RACKS = {LEADER: "a", FOLLOWER: "b"}
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Nodes]:
    folder = Path(tmp_path_factory.mktemp("racks"))
    config = {"replica_selector_class": SELECTOR, "replica_fetch_wait_max_ms": "100", **STEADY}
    nodes = Nodes(folder, zookeeper, f"/{folder.name}", 2, **config)
    nodes.racks = RACKS
    with nodes:
        yield nodes


@pytest.fixture(scope="module")
def side(nodes: Nodes) -> Iterator[Side]:
    side = Side("ours", nodes.bootstrap)
    side.until(lambda: side.answers() and side.controller() in RACKS, deadline_s=60)
    yield side
    side.close()


def produce(nodes: Nodes, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": ",".join(nodes.bootstrap), "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def partition(answer: Any) -> Any:
    return answer["responses"][0]["partitions"][0]


def test_leader_names_a_replica_that_serves_the_fetch(nodes: Nodes, side: Side) -> None:
    topic = side.create("near", [(LEADER, FOLLOWER)])
    produce(nodes, topic, [b"%d" % n for n in range(100)])
    for version in (11, 12, 13, 17):
        answer = partition(fetch(side, version, topic, [{}], to=LEADER, rack_id="b"))
        assert (answer["preferred_read_replica"], answer["records"]) == (FOLLOWER, b"")
        assert answer["high_watermark"] == 100
        for rack in ("a", "c", ""):
            answer = partition(fetch(side, version, topic, [{}], to=LEADER, rack_id=rack))
            assert answer["preferred_read_replica"] == -1
            assert answer["records"]

        def served() -> bool:
            answer = partition(fetch(side, version, topic, [{}], to=FOLLOWER, rack_id="b"))  # noqa: B023
            return bool(answer["high_watermark"] == 100 and answer["records"])

        side.until(served)
    beyond = partition(fetch(side, 12, topic, [{"fetch_offset": 101}], to=LEADER, rack_id="b"))
    assert beyond["error_code"] == "OFFSET_OUT_OF_RANGE"


def test_consumer_reads_from_its_rack(nodes: Nodes, side: Side) -> None:
    topic = side.create("read-near", [(LEADER, FOLLOWER)])
    values = [b"%d" % n for n in range(300)]
    produce(nodes, topic, values)
    log: list[str] = []
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(nodes.bootstrap),
            "group.id": "near",
            "enable.auto.commit": False,
            "client.rack": "b",
            "debug": "fetch",
            "logger": type("Logger", (), {"log": lambda _s, _l, text, *a: log.append(text % a)})(),
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[Any] = []

    def are_read() -> bool:
        read.extend(message.value() for message in consumer.consume(500, timeout=0.2))
        return len(read) >= len(values)

    until(are_read)
    consumer.close()
    assert read == values
    assert any("preferred" in line.lower() and f"{FOLLOWER}" in line for line in log), log[-20:]
