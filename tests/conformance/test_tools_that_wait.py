"""Apache Kafka's tools where brokers are away and data is much: elections, throttles."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.conformance.configs import BROKER, TOPIC, values
from tests.conformance.conftest import Pair
from tests.conformance.kafka_tools import tool
from tests.conformance.side import Side
from tests.conformance.test_admin_tools import ELECT, REASSIGN, plan
from tests.conformance.test_partitions import partitions, replicas_are

RECORD_BYTES, RECORDS = 64 * 1024, 128
THROTTLE_BYTES_PER_S = 1_000_000
REPLICAS = tuple(f"{name}.replication.throttled.replicas" for name in ("follower", "leader"))
RATES = tuple(f"{name}.replication.throttled.rate" for name in ("follower", "leader"))
BURST_S = 3.0
"""A quota is of windows of a second, and the first fetches find it unused."""


def _state(side: Side, topic: str) -> tuple[int, list[int]]:
    """As broker 1 knows it, which lives: the controller may be one that does not."""
    (partition,) = partitions(side, topic, to=1)["partitions"]
    return partition["leader_id"], sorted(partition["isr_nodes"])


@pytest.mark.thorough
def test_tool_elects_an_unclean_leader(pair: Pair) -> None:
    """Of a replica that was away when the last one in sync died (`--election-type unclean`)."""
    topic = pair.name("unclean")
    options = ("--election-type", "unclean", "--topic", topic, "--partition", "0")

    def elect(side: Side) -> tuple[str, int, list[int]]:
        side.create(topic, [(2, 3)], {"min.insync.replicas": "1"})
        with side.without_brokers(3) as controls:
            side.until(lambda: _state(side, topic) == (2, [2]))
            with side.without_brokers(2):
                controls.start("b3")
                side.until(lambda: _state(side, topic)[0] == -1)
                said = tool(ELECT, side.bootstrap, *options)
                side.until(lambda: _state(side, topic)[0] == 3)
                return said.replace(topic, "TOPIC"), *_state(side, topic)

    said, leader, isr = pair.assert_same(elect)
    assert "Successfully completed leader election (UNCLEAN) for partitions TOPIC-0" in said
    assert (leader, isr) == (3, [3])


@pytest.mark.thorough
def test_throttled_reassignment_is_slow_and_removes_its_throttle(
    pair: Pair, tmp_path: Path
) -> None:
    """8 MB at 1 MB/s; the end takes the throttle away."""
    ours, topic = pair.ours, pair.name("throttled")
    ours.create(topic, [(1,)], dict.fromkeys(REPLICAS, "*"))
    _fill(ours, topic)
    _limit(ours)
    options = ("--reassignment-json-file", plan(tmp_path, topic, (2,)))
    throttle = ("--throttle", str(THROTTLE_BYTES_PER_S))
    began_s = time.monotonic()  # on a busy machine all is moved before the tool has ended
    tool(REASSIGN, ours.bootstrap, "--execute", *options, *throttle)
    ours.until(lambda: replicas_are(ours, topic, (2,)))
    took_s = time.monotonic() - began_s
    assert list(values(ours, TOPIC, topic, *REPLICAS).values()) == ["0:2", "0:1"]
    assert all(_rates(ours, broker) == {str(THROTTLE_BYTES_PER_S)} for broker in (1, 2))
    tool(REASSIGN, ours.bootstrap, "--verify", *options)
    assert took_s > RECORD_BYTES * RECORDS / THROTTLE_BYTES_PER_S - BURST_S
    ours.until(lambda: set(values(ours, TOPIC, topic, *REPLICAS).values()) == {""})
    ours.until(lambda: _rates(ours, 1) == _rates(ours, 2) == set())


def _limit(side: Side) -> None:
    """All may be moved before brokers hear of the rate that the tool sets; so they know of one that
    is far too low to end in time, and the tool's must take its place."""
    setting = ",".join(f"{rate}={THROTTLE_BYTES_PER_S // 10}" for rate in RATES)
    words = ("--alter", "--entity-type", "brokers", "--add-config", setting)
    for broker in (1, 2):
        tool("kafka.admin.ConfigCommand", side.bootstrap, *words, "--entity-name", str(broker))
    low = {str(THROTTLE_BYTES_PER_S // 10)}
    side.until(lambda: _rates(side, 1) == _rates(side, 2) == low)


def _rates(side: Side, broker: int) -> set[str | None]:
    """As the broker itself has them."""
    return set(values(side, BROKER, str(broker), *RATES, to=broker).values())


def _fill(side: Side, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=side.bootstrap.split(","), acks="all")
    for _ in range(RECORDS):
        producer.send(topic, bytes(RECORD_BYTES))
    producer.flush()
    producer.close()
