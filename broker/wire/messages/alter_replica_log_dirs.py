"""AlterReplicaLogDirs: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ALTER_REPLICA_LOG_DIRS, "0-2", flexible="2+")
class AlterReplicaLogDirsRequest(Message):
    """Move replicas to other log directories of the receiving broker."""

    @struct
    class AlterReplicaLogDirTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    @struct
    class AlterReplicaLogDir(Struct):
        path: str = field("string", "0+")
        topics: Sequence[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = field(
            "[]AlterReplicaLogDirTopic", "0+"
        )

    dirs: Sequence[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = field(
        "[]AlterReplicaLogDir", "0+"
    )


@response(ApiKey.ALTER_REPLICA_LOG_DIRS, "0-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message):
    """One error a replica; none says that the move began, not that it ended."""

    @struct
    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")

    @struct
    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = field("string", "0+")
        partitions: Sequence[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = field(
            "[]AlterReplicaLogDirPartitionResult", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    results: Sequence[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = field(
        "[]AlterReplicaLogDirTopicResult", "0+"
    )
