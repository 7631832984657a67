"""The fixes of kafka-python: what an instance does with them, and the library without."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from urteil.harness.clients.kafka_python_fixes import fix_connections, forget_lost_positions

TOPIC, POSITION = TopicPartition("orders", 0), 274
REQUEST_TIMEOUT_MS, PATIENCE_MS = 300, 5_000
"""The library alone waits ten seconds for a connection."""


@pytest.fixture
def member() -> Iterator[KafkaConsumer]:
    """Of no broker: its coordinator is called as by the responses of one."""
    made = KafkaConsumer(
        group_id="group",
        bootstrap_servers="127.0.0.1:1",
        api_version=(3, 9),
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    made.subscribe([TOPIC.topic])
    yield made
    made.close(autocommit=False, timeout_ms=0)


def join(member: KafkaConsumer, generation: int) -> int | None:
    """The position after the member got the partition in this generation."""
    topic = ConsumerProtocolAssignment.TopicPartition(topic=TOPIC.topic, partitions=[0])
    data = ConsumerProtocolAssignment(assigned_partitions=[topic], user_data=b"").encode(version=0)
    asyncio.run(member._coordinator._on_join_complete_async(generation, "member", "range", data))
    position = member._subscription.assignment[TOPIC].position
    return None if position is None else position.offset


@pytest.mark.parametrize(("generation", "position"), [(4, POSITION), (7, None)])
def test_position_is_kept_only_in_the_next_generation(
    member: KafkaConsumer, generation: int, position: int | None
) -> None:
    forget_lost_positions(member._coordinator)
    assert join(member, 3) is None
    member._subscription.seek(TOPIC, POSITION)
    assert join(member, generation) == position


def test_library_keeps_an_old_position(member: KafkaConsumer) -> None:
    assert join(member, 3) is None
    member._subscription.seek(TOPIC, POSITION)
    assert join(member, 7) == POSITION


@pytest.fixture
def client() -> Iterator[Any]:
    """A client of one broker that accepts connections and stays silent, as a proxy does for a
    broker that is cut off."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        made = KafkaNetClient(
            bootstrap_servers=[f"127.0.0.1:{silent.getsockname()[1]}"],
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        yield made
        made.close()


def gives_up(client: Any) -> bool:
    """Whether the connection to the silent broker ends within the patience."""
    (broker,) = client.cluster.bootstrap_brokers()
    connection = client._manager.get_connection(broker.node_id)
    client._net.poll(timeout_ms=PATIENCE_MS, future=connection.init_future)
    return bool(connection.closed)


def test_connection_to_a_silent_broker_ends_after_the_request_timeout(client: Any) -> None:
    fix_connections(client._manager)
    assert gives_up(client)


@pytest.mark.thorough
def test_library_waits_longer_for_a_silent_broker(client: Any) -> None:
    assert not gives_up(client)
