"""ConsumerGroupHeartbeat: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.CONSUMER_GROUP_HEARTBEAT, "0", flexible="0+")
class ConsumerGroupHeartbeatRequest(Message):
    """A member of a group of the new protocol (KIP-848), and what changed for it."""

    @struct
    class TopicPartitions(Struct):
        topic_id: UUID = field("uuid", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    group_id: str = field("string", "0+")
    member_id: str = field("string", "0+")
    member_epoch: int = field("int32", "0+")
    instance_id: str | None = field("string", "0+", nullable="0+", default=None)
    rack_id: str | None = field("string", "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = field("int32", "0+", default=-1)
    subscribed_topic_names: Sequence[str] | None = field(
        "[]string", "0+", nullable="0+", default=None
    )
    server_assignor: str | None = field("string", "0+", nullable="0+", default=None)
    topic_partitions: Sequence[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = field(
        "[]TopicPartitions", "0+", nullable="0+", default=None
    )


@response(ApiKey.CONSUMER_GROUP_HEARTBEAT, "0", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message):
    """The member's epoch, and its assignment where that changed."""

    @struct
    class TopicPartitions(Struct):
        topic_id: UUID = field("uuid", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    @struct
    class Assignment(Struct):
        topic_partitions: Sequence[ConsumerGroupHeartbeatResponse.TopicPartitions] = field(
            "[]TopicPartitions", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+", default=None)
    member_id: str | None = field("string", "0+", nullable="0+", default=None)
    member_epoch: int = field("int32", "0+")
    heartbeat_interval_ms: int = field("int32", "0+")
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None = field(
        "Assignment", "0+", nullable="0+", default=None
    )
