"""OffsetFetch: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.OFFSET_FETCH, "0-9", flexible="6+")
class OffsetFetchRequest(Message):
    """Committed offsets of one group, from version 8 of several."""

    @struct
    class OffsetFetchRequestTopic(Struct):
        name: str = field("string", "0-7")
        partition_indexes: Sequence[int] = field("[]int32", "0-7")

    @struct
    class OffsetFetchRequestTopics(Struct):
        name: str = field("string", "8+")
        partition_indexes: Sequence[int] = field("[]int32", "8+")

    @struct
    class OffsetFetchRequestGroup(Struct):
        group_id: str = field("string", "8+")
        member_id: str | None = field("string", "9+", nullable="9+", default=None)
        member_epoch: int = field("int32", "9+", default=-1)
        topics: Sequence[OffsetFetchRequest.OffsetFetchRequestTopics] | None = field(
            "[]OffsetFetchRequestTopics", "8+", nullable="8+"
        )

    group_id: str = field("string", "0-7")
    topics: Sequence[OffsetFetchRequest.OffsetFetchRequestTopic] | None = field(
        "[]OffsetFetchRequestTopic", "0-7", nullable="2-7"
    )
    groups: Sequence[OffsetFetchRequest.OffsetFetchRequestGroup] = field(
        "[]OffsetFetchRequestGroup", "8+"
    )
    require_stable: bool = field("bool", "7+")


@response(ApiKey.OFFSET_FETCH, "0-9", flexible="6+")
class OffsetFetchResponse(Message):
    """Committed offsets, -1 where there is none."""

    @struct
    class OffsetFetchResponsePartition(Struct):
        partition_index: int = field("int32", "0-7")
        committed_offset: int = field("int64", "0-7")
        committed_leader_epoch: int = field("int32", "5-7", default=-1)
        metadata: str | None = field("string", "0-7", nullable="0-7")
        error_code: int = field("int16", "0-7")

    @struct
    class OffsetFetchResponseTopic(Struct):
        name: str = field("string", "0-7")
        partitions: Sequence[OffsetFetchResponse.OffsetFetchResponsePartition] = field(
            "[]OffsetFetchResponsePartition", "0-7"
        )

    @struct
    class OffsetFetchResponsePartitions(Struct):
        partition_index: int = field("int32", "8+")
        committed_offset: int = field("int64", "8+")
        committed_leader_epoch: int = field("int32", "8+", default=-1)
        metadata: str | None = field("string", "8+", nullable="8+")
        error_code: int = field("int16", "8+")

    @struct
    class OffsetFetchResponseTopics(Struct):
        name: str = field("string", "8+")
        partitions: Sequence[OffsetFetchResponse.OffsetFetchResponsePartitions] = field(
            "[]OffsetFetchResponsePartitions", "8+"
        )

    @struct
    class OffsetFetchResponseGroup(Struct):
        group_id: str = field("string", "8+")
        topics: Sequence[OffsetFetchResponse.OffsetFetchResponseTopics] = field(
            "[]OffsetFetchResponseTopics", "8+"
        )
        error_code: int = field("int16", "8+")

    throttle_time_ms: int = field("int32", "3+")
    topics: Sequence[OffsetFetchResponse.OffsetFetchResponseTopic] = field(
        "[]OffsetFetchResponseTopic", "0-7"
    )
    error_code: int = field("int16", "2-7")
    groups: Sequence[OffsetFetchResponse.OffsetFetchResponseGroup] = field(
        "[]OffsetFetchResponseGroup", "8+"
    )
