"""OffsetCommit and OffsetFetch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from urteil.broker.api import zookeeper_offsets
from urteil.broker.api.authorization import allowed_names, may
from urteil.broker.api.offset_commit_checks import CheckedCommits
from urteil.broker.api.registry import RequestContext, RequestError, handler
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

PartitionResult = TypeVar("PartitionResult")
Position = tuple[int, int, str | None, ErrorCode]
"""Offset, leader epoch, metadata, error."""

PartitionsByTopic = Sequence[tuple[str, Sequence[int]]]
PositionsByTopic = dict[str, dict[int, Position]]

NOTHING: Position = (-1, -1, "", ErrorCode.NONE)
FORBIDDEN: Position = (-1, -1, "", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
UNSTABLE: Position = (-1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)


@handler(ApiKey.OFFSET_COMMIT, 0, 9, topics="topics")
async def offset_commit(
    broker: BrokerParts, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    """Commit offsets together; partitions that cannot be committed carry their own error."""
    if not may(broker, context, Operation.READ, ResourceType.GROUP, request.group_id):
        raise RequestError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    positions = CheckedCommits(broker, context, request.topics, request.retention_time_ms)
    error = ErrorCode.NONE
    if positions.permitted and context.version:
        error = await broker.groups.commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            positions.storable,
        )
    if context.version:
        results = dict(positions.results(error))
    else:
        results = await zookeeper_offsets.commit(broker, request, positions)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=name,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=index, error_code=outcome
                    )
                    for index, outcome in answers
                ],
            )
            for name, answers in results.items()
        ]
    )


@handler(ApiKey.OFFSET_FETCH, 0, 9, topics="topics", groups="groups")
async def offset_fetch(
    broker: BrokerParts, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """The offsets of one group, from version 8 on of several."""
    if context.version >= 8:
        stable = request.require_stable
        return OffsetFetchResponse(
            groups=[_group(broker, context, group, stable) for group in request.groups]
        )
    if not context.version:
        known = await zookeeper_offsets.fetch(broker, context, request)
        return _response(known, ErrorCode.NONE)
    topics = None
    if request.topics is not None:
        topics = [(topic.name, topic.partition_indexes) for topic in request.topics]
    positions, error = _allowed_positions(
        broker, context, request.group_id, topics, request.require_stable
    )
    if error not in (ErrorCode.NONE, ErrorCode.GROUP_AUTHORIZATION_FAILED) and context.version < 2:
        # without a field for a common error every partition carries it
        positions = {
            name: {partition: (-1, -1, "", error) for partition in partitions}
            for name, partitions in topics or ()
        }
    return _response(positions, error)


def _response(positions_by_topic: PositionsByTopic, error: ErrorCode) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=name,
                partitions=_partition_results(
                    OffsetFetchResponse.OffsetFetchResponsePartition, partitions
                ),
            )
            for name, partitions in positions_by_topic.items()
        ],
    )


def _group(
    broker: BrokerParts,
    context: RequestContext,
    group: OffsetFetchRequest.OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponse.OffsetFetchResponseGroup:
    topics = None
    if group.topics is not None:
        topics = [(topic.name, topic.partition_indexes) for topic in group.topics]
    positions, error = _allowed_positions(broker, context, group.group_id, topics, require_stable)
    return OffsetFetchResponse.OffsetFetchResponseGroup(
        group_id=group.group_id,
        error_code=error,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopics(
                name=name,
                partitions=_partition_results(
                    OffsetFetchResponse.OffsetFetchResponsePartitions, partitions
                ),
            )
            for name, partitions in positions.items()
        ],
    )


def _partition_results(
    kind: Callable[..., PartitionResult], positions: dict[int, Position]
) -> list[PartitionResult]:
    """The positions as `kind`, the response partition of one range of versions."""
    return [
        kind(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            metadata=metadata,
            error_code=error,
        )
        for index, (offset, epoch, metadata, error) in positions.items()
    ]


def _allowed_positions(
    broker: BrokerParts,
    context: RequestContext,
    group_id: str,
    topics: PartitionsByTopic | None,
    require_stable: bool,
) -> tuple[PositionsByTopic, ErrorCode]:
    """Offsets; an unauthorized topic carries an error, or is left out of a request for all."""
    if not may(broker, context, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return {}, ErrorCode.GROUP_AUTHORIZATION_FAILED
    if topics is None:
        positions, error = _positions(broker, group_id, None, require_stable)
        allowed = allowed_names(broker, context, Operation.DESCRIBE, ResourceType.TOPIC, positions)
        return {name: position for name, position in positions.items() if name in allowed}, error
    names = [name for name, _ in topics]
    allowed = allowed_names(broker, context, Operation.DESCRIBE, ResourceType.TOPIC, names)
    known = [topic for topic in topics if topic[0] in allowed]
    positions, error = _positions(broker, group_id, known, require_stable)
    if error is ErrorCode.NONE:
        for name, partitions in topics:
            if name not in allowed:
                positions[name] = dict.fromkeys(partitions, FORBIDDEN)
    return positions, error


def _positions(
    broker: BrokerParts, group_id: str, topics: PartitionsByTopic | None, require_stable: bool
) -> tuple[PositionsByTopic, ErrorCode]:
    """Committed offsets by topic and partition; `topics` None means all.

    With `require_stable` an offset that an open transaction changes is UNSTABLE.
    """
    shard, error = broker.groups.find(group_id)
    if shard is None:
        return {}, error
    known = shard.offsets.get(group_id, {})
    if topics is None:
        places = sorted(known)
    else:
        places = [(name, index) for name, partitions in topics for index in partitions]
    positions_by_topic: PositionsByTopic = {}
    for name, index in places:
        committed = known.get((name, index))
        position = NOTHING
        if require_stable and shard.pending.is_pending((group_id, name, index)):
            position = UNSTABLE
        elif committed is not None:
            value = committed.value
            position = (value.offset, value.leader_epoch, value.metadata, ErrorCode.NONE)
        positions_by_topic.setdefault(name, {})[index] = position
    return positions_by_topic, ErrorCode.NONE
