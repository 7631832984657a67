"""DeleteRecords: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DELETE_RECORDS, "0-2", flexible="2+")
class DeleteRecordsRequest(Message):
    """Offsets below which records go."""

    @struct
    class DeleteRecordsPartition(Struct):
        partition_index: int = field("int32", "0+")
        offset: int = field("int64", "0+")

    @struct
    class DeleteRecordsTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[DeleteRecordsRequest.DeleteRecordsPartition] = field(
            "[]DeleteRecordsPartition", "0+"
        )

    topics: Sequence[DeleteRecordsRequest.DeleteRecordsTopic] = field("[]DeleteRecordsTopic", "0+")
    timeout_ms: int = field("int32", "0+")


@response(ApiKey.DELETE_RECORDS, "0-2", flexible="2+")
class DeleteRecordsResponse(Message):
    """Low watermarks."""

    @struct
    class DeleteRecordsPartitionResult(Struct):
        partition_index: int = field("int32", "0+")
        low_watermark: int = field("int64", "0+")
        error_code: int = field("int16", "0+")

    @struct
    class DeleteRecordsTopicResult(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[DeleteRecordsResponse.DeleteRecordsPartitionResult] = field(
            "[]DeleteRecordsPartitionResult", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    topics: Sequence[DeleteRecordsResponse.DeleteRecordsTopicResult] = field(
        "[]DeleteRecordsTopicResult", "0+"
    )
