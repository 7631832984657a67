"""ConsumerGroupDescribe: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.CONSUMER_GROUP_DESCRIBE, "0", flexible="0+")
class ConsumerGroupDescribeRequest(Message):
    """Groups of the new protocol (KIP-848) to describe."""

    group_ids: Sequence[str] = field("[]string", "0+")
    include_authorized_operations: bool = field("bool", "0+")


@response(ApiKey.CONSUMER_GROUP_DESCRIBE, "0", flexible="0+")
class ConsumerGroupDescribeResponse(Message):
    """State, epochs and members of each group."""

    @struct
    class TopicPartitions(Struct):
        topic_id: UUID = field("uuid", "0+")
        topic_name: str = field("string", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    @struct
    class Assignment(Struct):
        topic_partitions: Sequence[ConsumerGroupDescribeResponse.TopicPartitions] = field(
            "[]TopicPartitions", "0+"
        )

    @struct
    class Member(Struct):
        member_id: str = field("string", "0+")
        instance_id: str | None = field("string", "0+", nullable="0+", default=None)
        rack_id: str | None = field("string", "0+", nullable="0+", default=None)
        member_epoch: int = field("int32", "0+")
        client_id: str = field("string", "0+")
        client_host: str = field("string", "0+")
        subscribed_topic_names: Sequence[str] = field("[]string", "0+")
        subscribed_topic_regex: str | None = field("string", "0+", nullable="0+", default=None)
        assignment: ConsumerGroupDescribeResponse.Assignment = field("Assignment", "0+")
        target_assignment: ConsumerGroupDescribeResponse.Assignment = field("Assignment", "0+")

    @struct
    class DescribedGroup(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+", default=None)
        group_id: str = field("string", "0+")
        group_state: str = field("string", "0+")
        group_epoch: int = field("int32", "0+")
        assignment_epoch: int = field("int32", "0+")
        assignor_name: str = field("string", "0+")
        members: Sequence[ConsumerGroupDescribeResponse.Member] = field("[]Member", "0+")
        authorized_operations: int = field("int32", "0+", default=-2147483648)

    throttle_time_ms: int = field("int32", "0+")
    groups: Sequence[ConsumerGroupDescribeResponse.DescribedGroup] = field("[]DescribedGroup", "0+")
