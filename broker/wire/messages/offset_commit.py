"""OffsetCommit: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.OFFSET_COMMIT, "0-9", flexible="8+")
class OffsetCommitRequest(Message):
    """Offsets a group has consumed."""

    @struct
    class OffsetCommitRequestPartition(Struct):
        partition_index: int = field("int32", "0+")
        committed_offset: int = field("int64", "0+")
        committed_leader_epoch: int = field("int32", "6+", default=-1)
        commit_timestamp: int = field("int64", "1", default=-1)
        committed_metadata: str | None = field("string", "0+", nullable="0+")

    @struct
    class OffsetCommitRequestTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[OffsetCommitRequest.OffsetCommitRequestPartition] = field(
            "[]OffsetCommitRequestPartition", "0+"
        )

    group_id: str = field("string", "0+")
    generation_id_or_member_epoch: int = field("int32", "1+", default=-1)
    member_id: str = field("string", "1+")
    group_instance_id: str | None = field("string", "7+", nullable="7+", default=None)
    retention_time_ms: int = field("int64", "2-4", default=-1)
    topics: Sequence[OffsetCommitRequest.OffsetCommitRequestTopic] = field(
        "[]OffsetCommitRequestTopic", "0+"
    )


@response(ApiKey.OFFSET_COMMIT, "0-9", flexible="8+")
class OffsetCommitResponse(Message):
    """One error a partition."""

    @struct
    class OffsetCommitResponsePartition(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")

    @struct
    class OffsetCommitResponseTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[OffsetCommitResponse.OffsetCommitResponsePartition] = field(
            "[]OffsetCommitResponsePartition", "0+"
        )

    throttle_time_ms: int = field("int32", "3+")
    topics: Sequence[OffsetCommitResponse.OffsetCommitResponseTopic] = field(
        "[]OffsetCommitResponseTopic", "0+"
    )
