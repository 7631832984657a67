"""A member that missed a generation fetches committed offsets; any other keeps its positions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from urteil.harness.clients.kafka_python_fixes import forget_lost_positions

TOPIC, POSITION = TopicPartition("orders", 0), 274


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
