"""OffsetDelete: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.OFFSET_DELETE, "0", flexible="none")
class OffsetDeleteRequest(Message):
    """Positions of a group to forget."""

    @struct
    class OffsetDeleteRequestPartition(Struct):
        partition_index: int = field("int32", "0+")

    @struct
    class OffsetDeleteRequestTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[OffsetDeleteRequest.OffsetDeleteRequestPartition] = field(
            "[]OffsetDeleteRequestPartition", "0+"
        )

    group_id: str = field("string", "0+")
    topics: Sequence[OffsetDeleteRequest.OffsetDeleteRequestTopic] = field(
        "[]OffsetDeleteRequestTopic", "0+"
    )


@response(ApiKey.OFFSET_DELETE, "0", flexible="none")
class OffsetDeleteResponse(Message):
    """An error for all, or one a partition."""

    @struct
    class OffsetDeleteResponsePartition(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")

    @struct
    class OffsetDeleteResponseTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[OffsetDeleteResponse.OffsetDeleteResponsePartition] = field(
            "[]OffsetDeleteResponsePartition", "0+"
        )

    error_code: int = field("int16", "0+")
    throttle_time_ms: int = field("int32", "0+")
    topics: Sequence[OffsetDeleteResponse.OffsetDeleteResponseTopic] = field(
        "[]OffsetDeleteResponseTopic", "0+"
    )
