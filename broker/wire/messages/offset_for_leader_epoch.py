"""OffsetForLeaderEpoch: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.OFFSET_FOR_LEADER_EPOCH, "0-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message):
    """Where the given leader epochs ended (KIP-101, KIP-279)."""

    @struct
    class OffsetForLeaderPartition(Struct):
        partition: int = field("int32", "0+")
        current_leader_epoch: int = field("int32", "2+", default=-1)
        leader_epoch: int = field("int32", "0+")

    @struct
    class OffsetForLeaderTopic(Struct):
        topic: str = field("string", "0+")
        partitions: Sequence[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = field(
            "[]OffsetForLeaderPartition", "0+"
        )

    replica_id: int = field("int32", "3+", default=-2)
    topics: Sequence[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = field(
        "[]OffsetForLeaderTopic", "0+"
    )


@response(ApiKey.OFFSET_FOR_LEADER_EPOCH, "0-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    """The largest epoch not above the requested one, and its end offset."""

    @struct
    class EpochEndOffset(Struct):
        error_code: int = field("int16", "0+")
        partition: int = field("int32", "0+")
        leader_epoch: int = field("int32", "1+", default=-1)
        end_offset: int = field("int64", "0+", default=-1)

    @struct
    class OffsetForLeaderTopicResult(Struct):
        topic: str = field("string", "0+")
        partitions: Sequence[OffsetForLeaderEpochResponse.EpochEndOffset] = field(
            "[]EpochEndOffset", "0+"
        )

    throttle_time_ms: int = field("int32", "2+")
    topics: Sequence[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = field(
        "[]OffsetForLeaderTopicResult", "0+"
    )
