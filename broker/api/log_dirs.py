"""DescribeLogDirs and AlterReplicaLogDirs: the log directories of replicas."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from urteil.broker.api.authorization import may_cluster, require_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.log.log_directory import LogDirectory
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

log = logging.getLogger("api")

UNKNOWN_LAG = -1
Described = DescribeLogDirsResponse.DescribeLogDirsPartition


@handler(ApiKey.DESCRIBE_LOG_DIRS, 0, 4)
async def describe_log_dirs(
    broker: BrokerParts, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Every directory with the requested replicas; null topics mean all, an empty list none."""
    if not may_cluster(broker, context, Operation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    selected = None
    if request.topics is not None:
        places = ((topic.topic, index) for topic in request.topics for index in topic.partitions)
        selected = {place async for place in yield_items(places)}
    return DescribeLogDirsResponse(
        results=[_describe(broker, path, selected) for path in broker.logs.paths]
    )


def _describe(
    broker: BrokerParts, path: Path, selected: set[tuple[str, int]] | None
) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    directory = next(
        (directory for directory in broker.logs.directories if directory.path == path), None
    )
    try:
        if directory is None or directory.health.failure is not None:
            raise OSError(f"{path} is offline")
        total, usable = broker.logs.storage.space(path)
    except OSError as error:
        log.warning("cannot describe a log directory: %s", error)
        return DescribeLogDirsResponse.DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(path)
        )
    topics: dict[str, list[Described]] = {}
    for topic, replica in _replicas(broker, directory, selected):
        topics.setdefault(topic, []).append(replica)
    return DescribeLogDirsResponse.DescribeLogDirsResult(
        log_dir=str(path),
        topics=[
            DescribeLogDirsResponse.DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        total_bytes=total,
        usable_bytes=usable,
    )


def _replicas(
    broker: BrokerParts, directory: LogDirectory, selected: set[tuple[str, int]] | None
) -> Iterator[tuple[str, Described]]:
    for key, plog in directory.logs.items():
        if selected is None or key in selected:
            is_future = broker.logs.future(*key) is plog
            yield (
                key[0],
                Described(
                    partition_index=key[1],
                    partition_size=plog.size,
                    offset_lag=_lag(broker, key, plog, is_future=is_future),
                    is_future_key=is_future,
                ),
            )


def _lag(broker: BrokerParts, key: tuple[str, int], plog: PartitionLog, *, is_future: bool) -> int:
    """The lag behind the current log, or behind the high watermark (`getLogEndOffsetLag`)."""
    hosted = broker.replicas.partition(*key)
    if hosted is None:
        return UNKNOWN_LAG
    if is_future:
        return hosted.log.log_end_offset - plog.log_end_offset
    return max(plog.high_watermark - plog.log_end_offset, 0)


@handler(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, dirs="results")
async def alter_replica_log_dirs(
    broker: BrokerParts, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin to move replicas; of a repeated replica the last directory counts."""
    require_cluster(broker, context, Operation.ALTER)
    asked = (
        ((topic.name, partition), directory.path)
        for directory in request.dirs
        for topic in directory.topics
        for partition in topic.partitions
    )
    path_by_place = {place: path async for place, path in yield_items(asked)}
    topics: dict[str, list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]] = {}
    async for (topic, partition), path in yield_items(path_by_place.items()):
        topics.setdefault(topic, []).append(
            AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                partition_index=partition,
                error_code=broker.replicas.moves.alter(topic, partition, path),
            )
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic_name=name, partitions=partitions
            )
            for name, partitions in topics.items()
        ]
    )
