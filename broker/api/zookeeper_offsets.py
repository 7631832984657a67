"""OffsetCommit and OffsetFetch of version 0: offsets in ZooKeeper, served by any broker.

Source: `KafkaApis.commitOffsetsToZookeeper` and `handleOffsetFetchRequestFromZookeeper`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urteil.broker.api.authorization import allowed_names, may
from urteil.broker.api.offset_commit_checks import CheckedCommits, CommitResults
from urteil.broker.api.registry import RequestContext
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import OffsetCommitRequest, OffsetFetchRequest
from urteil.broker.zookeeper.consumer_offsets import read_offset, write_offset

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

Position = tuple[int, int, str | None, ErrorCode]
"""Offset, leader epoch (-1), metadata (empty), error."""


async def commit(
    broker: BrokerParts, request: OffsetCommitRequest, positions: CheckedCommits
) -> CommitResults:
    """Write each offset; a repeated partition is written twice."""
    results = {name: list(answers) for name, answers in positions.rejected.items()}
    for topic in request.topics:
        for partition in topic.partitions:
            place = topic.name, partition.partition_index
            if place in positions.permitted:
                outcome = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if (
                    len(partition.committed_metadata or "")
                    <= broker.config.offset_metadata_max_bytes
                ):
                    outcome = await _write(
                        broker, request.group_id, place, partition.committed_offset
                    )
                results.setdefault(topic.name, []).append((partition.partition_index, outcome))
    return results


async def _write(broker: BrokerParts, group: str, place: tuple[str, int], offset: int) -> ErrorCode:
    try:
        await write_offset(broker.zk, group, *place, offset)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


async def fetch(
    broker: BrokerParts, context: RequestContext, request: OffsetFetchRequest
) -> dict[str, dict[int, Position]]:
    topics = request.topics or ()
    forbidden = {name: ErrorCode.TOPIC_AUTHORIZATION_FAILED for name in (t.name for t in topics)}
    if not may(broker, context, Operation.DESCRIBE, ResourceType.GROUP, request.group_id):
        forbidden = dict.fromkeys(forbidden, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    else:
        for name in allowed_names(
            broker, context, Operation.DESCRIBE, ResourceType.TOPIC, list(forbidden)
        ):
            forbidden.pop(name, None)
    positions: dict[str, dict[int, Position]] = {}
    for topic in topics:
        answers = positions.setdefault(topic.name, {})
        for index in topic.partition_indexes:
            if topic.name in forbidden:
                answers[index] = _position(-1, forbidden[topic.name])
            else:
                answers[index] = await _read(broker, request.group_id, topic.name, index)
    return positions


async def _read(broker: BrokerParts, group: str, topic: str, index: int) -> Position:
    offset = None
    if broker.metadata.partition(topic, index) is not None:
        try:
            offset = await read_offset(broker.zk, group, topic, index)
        except ValueError:
            return _position(-1, ErrorCode.UNKNOWN_SERVER_ERROR)
    if offset is None:
        return _position(-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return _position(offset, ErrorCode.NONE)


def _position(offset: int, error: ErrorCode) -> Position:
    return offset, -1, "", error
