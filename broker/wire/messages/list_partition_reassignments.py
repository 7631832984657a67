"""ListPartitionReassignments: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.LIST_PARTITION_REASSIGNMENTS, "0", flexible="0+")
class ListPartitionReassignmentsRequest(Message):
    """Partitions whose reassignments are requested; null means all."""

    @struct
    class ListPartitionReassignmentsTopics(Struct):
        name: str = field("string", "0+")
        partition_indexes: Sequence[int] = field("[]int32", "0+")

    timeout_ms: int = field("int32", "0+", default=60000)
    topics: Sequence[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = (
        field("[]ListPartitionReassignmentsTopics", "0+", nullable="0+", default=None)
    )


@response(ApiKey.LIST_PARTITION_REASSIGNMENTS, "0", flexible="0+")
class ListPartitionReassignmentsResponse(Message):
    """Reassignments under way."""

    @struct
    class OngoingPartitionReassignment(Struct):
        partition_index: int = field("int32", "0+")
        replicas: Sequence[int] = field("[]int32", "0+")
        adding_replicas: Sequence[int] = field("[]int32", "0+")
        removing_replicas: Sequence[int] = field("[]int32", "0+")

    @struct
    class OngoingTopicReassignment(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = (
            field("[]OngoingPartitionReassignment", "0+")
        )

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    topics: Sequence[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = field(
        "[]OngoingTopicReassignment", "0+"
    )
