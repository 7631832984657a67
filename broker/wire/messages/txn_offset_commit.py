"""TxnOffsetCommit: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.TXN_OFFSET_COMMIT, "0-4", flexible="3+")
class TxnOffsetCommitRequest(Message):
    """Offsets that a group will have consumed once the transaction commits."""

    @struct
    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int = field("int32", "0+")
        committed_offset: int = field("int64", "0+")
        committed_leader_epoch: int = field("int32", "2+", default=-1)
        committed_metadata: str | None = field("string", "0+", nullable="0+")

    @struct
    class TxnOffsetCommitRequestTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = field(
            "[]TxnOffsetCommitRequestPartition", "0+"
        )

    transactional_id: str = field("string", "0+")
    group_id: str = field("string", "0+")
    producer_id: int = field("int64", "0+")
    producer_epoch: int = field("int16", "0+")
    generation_id: int = field("int32", "3+", default=-1)
    member_id: str = field("string", "3+")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
    topics: Sequence[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = field(
        "[]TxnOffsetCommitRequestTopic", "0+"
    )


@response(ApiKey.TXN_OFFSET_COMMIT, "0-4", flexible="3+")
class TxnOffsetCommitResponse(Message):
    """One error a partition."""

    @struct
    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")

    @struct
    class TxnOffsetCommitResponseTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = field(
            "[]TxnOffsetCommitResponsePartition", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    topics: Sequence[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = field(
        "[]TxnOffsetCommitResponseTopic", "0+"
    )
