"""DescribeLogDirs: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_LOG_DIRS, "0-4", flexible="2+")
class DescribeLogDirsRequest(Message):
    """Log directories; null topics mean all."""

    @struct
    class DescribableLogDirTopic(Struct):
        topic: str = field("string", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    topics: Sequence[DescribeLogDirsRequest.DescribableLogDirTopic] | None = field(
        "[]DescribableLogDirTopic", "0+", nullable="0+"
    )


@response(ApiKey.DESCRIBE_LOG_DIRS, "0-4", flexible="2+")
class DescribeLogDirsResponse(Message):
    """Sizes and lags of replicas by directory."""

    @struct
    class DescribeLogDirsPartition(Struct):
        partition_index: int = field("int32", "0+")
        partition_size: int = field("int64", "0+")
        offset_lag: int = field("int64", "0+")
        is_future_key: bool = field("bool", "0+")

    @struct
    class DescribeLogDirsTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[DescribeLogDirsResponse.DescribeLogDirsPartition] = field(
            "[]DescribeLogDirsPartition", "0+"
        )

    @struct
    class DescribeLogDirsResult(Struct):
        error_code: int = field("int16", "0+")
        log_dir: str = field("string", "0+")
        topics: Sequence[DescribeLogDirsResponse.DescribeLogDirsTopic] = field(
            "[]DescribeLogDirsTopic", "0+"
        )
        total_bytes: int = field("int64", "4+", default=-1)
        usable_bytes: int = field("int64", "4+", default=-1)

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "3+")
    results: Sequence[DescribeLogDirsResponse.DescribeLogDirsResult] = field(
        "[]DescribeLogDirsResult", "0+"
    )
