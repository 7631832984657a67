"""AlterPartitionReassignments: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "0", flexible="0+")
class AlterPartitionReassignmentsRequest(Message):
    """New replicas of partitions; null cancels."""

    @struct
    class ReassignablePartition(Struct):
        partition_index: int = field("int32", "0+")
        replicas: Sequence[int] | None = field("[]int32", "0+", nullable="0+", default=None)

    @struct
    class ReassignableTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[AlterPartitionReassignmentsRequest.ReassignablePartition] = field(
            "[]ReassignablePartition", "0+"
        )

    timeout_ms: int = field("int32", "0+", default=60000)
    topics: Sequence[AlterPartitionReassignmentsRequest.ReassignableTopic] = field(
        "[]ReassignableTopic", "0+"
    )


@response(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "0", flexible="0+")
class AlterPartitionReassignmentsResponse(Message):
    """One error a partition."""

    @struct
    class ReassignablePartitionResponse(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    @struct
    class ReassignableTopicResponse(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = (
            field("[]ReassignablePartitionResponse", "0+")
        )

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    responses: Sequence[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = field(
        "[]ReassignableTopicResponse", "0+"
    )
