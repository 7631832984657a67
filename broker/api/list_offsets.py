"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from urteil.broker.api.authorization import allowed_names, may_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.replication.offset_lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    find_epoch_end,
    find_offset,
    list_offsets_before,
)
from urteil.broker.replication.partition_read import ISOLATIONS
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from urteil.broker.wire.schema import NEVER

CONSUMER = -1
DEBUGGING_CONSUMER = -2

Answer = ListOffsetsResponse.ListOffsetsPartitionResponse
RequestedPartition = ListOffsetsRequest.ListOffsetsPartition


@handler(ApiKey.LIST_OFFSETS, 0, 9)
async def list_offsets(
    broker: BrokerParts, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """One offset per partition (version 0: several). A repeated partition is INVALID_REQUEST from
    version 1 on."""
    times: Counter[tuple[str, int]] = Counter()
    if context.version > 0:
        places = (
            (topic.name, partition) for topic in request.topics for partition in topic.partitions
        )
        async for name, partition in yield_items(places):
            times[name, partition.partition_index] += 1
    allowed = _describable_topics(broker, context, [topic.name for topic in request.topics])
    answers = []
    async for topic in yield_items(
        sorted(request.topics, key=lambda topic: topic.name not in allowed)
    ):
        partitions = [
            _error_answer(partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if topic.name not in allowed
            else _error_answer(partition, ErrorCode.INVALID_REQUEST)
            if times[topic.name, partition.partition_index] > 1
            else await _answer(broker, context.version, request, topic.name, partition)
            async for partition in yield_items(topic.partitions)
        ]
        answers.append(
            ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=partitions)
        )
    return ListOffsetsResponse(topics=answers)


def _describable_topics(
    broker: BrokerParts, context: RequestContext, topics: Sequence[str]
) -> Collection[str]:
    return allowed_names(broker, context, Operation.DESCRIBE, ResourceType.TOPIC, topics)


SPECIAL_TIMESTAMPS = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
"""Negative timestamps with a meaning, each with its first version."""


async def _answer(
    broker: BrokerParts,
    version: int,
    request: ListOffsetsRequest,
    topic: str,
    requested: RequestedPartition,
) -> Answer:
    if requested.timestamp < 0 and version < SPECIAL_TIMESTAMPS.get(requested.timestamp, NEVER):
        return _error_answer(requested, ErrorCode.UNSUPPORTED_VERSION)
    is_client = request.replica_id == CONSUMER
    if is_client and request.isolation_level not in ISOLATIONS:
        return _error_answer(requested, ErrorCode.UNKNOWN_SERVER_ERROR)
    partition, error = broker.replicas.find_partition(topic, requested.partition_index)
    if partition is None:
        return _error_answer(requested, error)
    offset = await find_offset(
        partition,
        requested.timestamp,
        offload=broker.offload,
        current_leader_epoch=requested.current_leader_epoch,
        isolation=request.isolation_level if is_client else None,
        only_leader=request.replica_id != DEBUGGING_CONSUMER,
    )
    if offset.error is ErrorCode.OFFSET_NOT_AVAILABLE and version < 5:
        return _error_answer(requested, ErrorCode.LEADER_NOT_AVAILABLE)
    if offset.error is not ErrorCode.NONE:
        return _error_answer(requested, offset.error)
    if version == 0:
        offsets = list_offsets_before(
            partition, requested.timestamp, requested.max_num_offsets, broker.clock.now_ms()
        )
        return Answer(partition_index=requested.partition_index, old_style_offsets=offsets)
    return Answer(
        partition_index=requested.partition_index,
        timestamp=offset.timestamp_ms,
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
    )


def _error_answer(requested: RequestedPartition, error: ErrorCode) -> Answer:
    return Answer(partition_index=requested.partition_index, error_code=error)


@handler(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, topics="topics")
async def offset_for_leader_epoch(
    broker: BrokerParts, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """The end offsets of leader epochs (KIP-101, KIP-279)."""
    names = [topic.topic for topic in request.topics]
    if may_cluster(broker, context, Operation.CLUSTER_ACTION, quiet=True):
        allowed: Collection[str] = set(names)
    else:
        allowed = _describable_topics(broker, context, names)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _epoch_end(broker, topic.topic, partition, is_allowed=topic.topic in allowed)
                    for partition in topic.partitions
                ],
            )
            for topic in sorted(request.topics, key=lambda topic: topic.topic not in allowed)
        ]
    )


def _epoch_end(
    broker: BrokerParts,
    topic: str,
    requested: OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
    *,
    is_allowed: bool,
) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    if not is_allowed:
        return OffsetForLeaderEpochResponse.EpochEndOffset(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=requested.partition
        )
    partition, error = broker.replicas.find_partition(topic, requested.partition)
    epoch = end_offset = -1
    if partition is not None:
        error, epoch, end_offset = find_epoch_end(
            partition, requested.leader_epoch, requested.current_leader_epoch
        )
    return OffsetForLeaderEpochResponse.EpochEndOffset(
        error_code=error, partition=requested.partition, leader_epoch=epoch, end_offset=end_offset
    )
