"""Requests of members, and groups that questions start from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.fetching import fetch
from tests.conformance.side import Side
from urteil.broker.base.coordinator_partition import partition_for
from urteil.broker.wire.batches import iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

SESSION_MS = REBALANCE_MS = 60_000
"""No question waits for their end: who is slow to ask is not put out meanwhile."""
Protocol = JoinGroupRequest.JoinGroupRequestProtocol
Identity = LeaveGroupRequest.MemberIdentity
Assignment = SyncGroupRequest.SyncGroupRequestAssignment
Wanted = Sequence[tuple[str, Sequence[int]]] | None


def join(group: str, member: str = "", **more: Any) -> JoinGroupRequest:
    given = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": [Protocol(name="range", metadata=b"r"), Protocol(name="other", metadata=b"o")],
        **more,
    }
    return JoinGroupRequest(group_id=group, member_id=member, **given)


def sync(group: str, member: str, generation: int, **more: Any) -> SyncGroupRequest:
    given = {"protocol_type": "consumer", "protocol_name": "range", **more}
    return SyncGroupRequest(group_id=group, generation_id=generation, member_id=member, **given)


def beat(group: str, member: str, generation: int, **more: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member, **more)


def leave(group: str, member: str, *others: Any) -> LeaveGroupRequest:
    """`member` for the versions that carry one, and as the first of several for the others."""
    members = [Identity(member_id=member), *others]
    return LeaveGroupRequest(group_id=group, member_id=member, members=members)


def commit(
    group: str, positions: Sequence[tuple[str, int, int]], *, member: str = "",
    generation: int = -1, metadata: str | None = "", epoch: int = -1, stamp: int = -1, **more: Any,
) -> OffsetCommitRequest:  # fmt: skip
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_metadata=metadata,
                        committed_leader_epoch=epoch,
                        commit_timestamp=stamp,
                    )
                ],
            )
            for name, index, offset in positions
        ],
        **more,
    )


def offset_fetch(version: int, *groups: tuple[str, Wanted]) -> OffsetFetchRequest:
    """Committed offsets: of all groups from version 8 on, before that of the first."""
    group, topics = groups[0]
    if version < 8:
        kind = OffsetFetchRequest.OffsetFetchRequestTopic
        return OffsetFetchRequest(group_id=group, topics=_topics(kind, topics))
    many = OffsetFetchRequest.OffsetFetchRequestTopics
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=_topics(many, topics))
            for name, topics in groups
        ]
    )


def _topics(kind: Any, topics: Wanted) -> Any:
    return None if topics is None else [kind(name=n, partition_indexes=p) for n, p in topics]


def member_of(side: Side, group: str, *, instance: str | None, at: int) -> tuple[str, int]:
    """Join alone, through MEMBER_ID_REQUIRED where it comes: the member id and generation."""
    answer = side.get(join(group, group_instance_id=instance), 5, to=at)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = side.get(join(group, answer.member_id), 5, to=at)
    assert answer.error_code == ErrorCode.NONE, answer
    side.names[answer.member_id] = f"the member of {group}"
    return answer.member_id, answer.generation_id


def stable(side: Side, group: str, *, instance: str | None = None) -> tuple[int, str, int]:
    """A group of one member that is stable: coordinator, member id, generation."""
    at = side.coordinator(group)
    member, generation = member_of(side, group, instance=instance, at=at)
    given = [Assignment(member_id=member, assignment=b"all")]
    request = sync(group, member, generation, group_instance_id=instance, assignments=given)
    assert side.get(request, 3, to=at).error_code == ErrorCode.NONE
    return at, member, generation


def stored(side: Side, group: str) -> list[Any]:
    """The records of the offsets topic's partition that has the group."""
    topics = [MetadataRequest.MetadataRequestTopic(name="__consumer_offsets")]
    (topic,) = side.get(MetadataRequest(topics=topics), 9).topics
    index = partition_for(group, len(topic.partitions))
    to = next(
        partition.leader_id for partition in topic.partitions if partition.partition_index == index
    )
    answer = fetch(side, 11, topic.name, [{"partition": index}], to=to)
    (partition,) = answer["responses"][0]["partitions"]
    batches = iter_batches(partition["records"])
    return [record for _, part in batches for record in iter_records(part)]
