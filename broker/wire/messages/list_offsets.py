"""ListOffsets: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.LIST_OFFSETS, "0-9", flexible="6+")
class ListOffsetsRequest(Message):
    """Offsets by timestamp, earliest or latest."""

    @struct
    class ListOffsetsPartition(Struct):
        partition_index: int = field("int32", "0+")
        current_leader_epoch: int = field("int32", "4+", default=-1)
        timestamp: int = field("int64", "0+")
        max_num_offsets: int = field("int32", "0", default=1)

    @struct
    class ListOffsetsTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[ListOffsetsRequest.ListOffsetsPartition] = field(
            "[]ListOffsetsPartition", "0+"
        )

    replica_id: int = field("int32", "0+")
    isolation_level: int = field("int8", "2+")
    topics: Sequence[ListOffsetsRequest.ListOffsetsTopic] = field("[]ListOffsetsTopic", "0+")


@response(ApiKey.LIST_OFFSETS, "0-9", flexible="6+")
class ListOffsetsResponse(Message):
    """One offset a partition (several in version 0)."""

    @struct
    class ListOffsetsPartitionResponse(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")
        old_style_offsets: Sequence[int] = field("[]int64", "0")
        timestamp: int = field("int64", "1+", default=-1)
        offset: int = field("int64", "1+", default=-1)
        leader_epoch: int = field("int32", "4+", default=-1)

    @struct
    class ListOffsetsTopicResponse(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[ListOffsetsResponse.ListOffsetsPartitionResponse] = field(
            "[]ListOffsetsPartitionResponse", "0+"
        )

    throttle_time_ms: int = field("int32", "2+")
    topics: Sequence[ListOffsetsResponse.ListOffsetsTopicResponse] = field(
        "[]ListOffsetsTopicResponse", "0+"
    )
