"""A member of a consumer group that sends single requests, without any protocol of its own."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

from urteil.harness.conformance.question import Brokers, check
from urteil.harness.protocol.framing import encode_string

SESSION_MS, REBALANCE_MS = 6_000, 2_000
CONSUMER = "consumer"


NO_POSITIONS = "none"


def encode_subscription(topic: str) -> bytes:
    """A consumer's subscription to one topic (version 0)."""
    return struct.pack(">hi", 0, 1) + encode_string(topic) + struct.pack(">i", -1)


@dataclass(slots=True, kw_only=True)
class Member:
    """`id` and `generation` are those of the last join."""

    brokers: Brokers
    group: str
    node: int
    protocols: Mapping[str, bytes] = field(
        default_factory=lambda: {"range": encode_subscription("none")}
    )
    instance: str | None = None
    session_ms: int = SESSION_MS
    kind: str = CONSUMER
    id: str = ""
    generation: int = -1

    def send(self, request: Any) -> Any:
        return self.brokers.send(self.node, request)

    def join(self, version: int = 3) -> Any:
        """Send JoinGroup. Returns the response; without an error the member has its id and
        generation."""
        kinds = JoinGroupRequest
        response = self.send(
            kinds[5 if self.instance else version](
                group_id=self.group, session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=REBALANCE_MS, member_id=self.id,
                group_instance_id=self.instance, protocol_type=self.kind,
                protocols=[
                    kinds.JoinGroupRequestProtocol(name=name, metadata=known)
                    for name, known in self.protocols.items()
                ],
            )
        )  # fmt: skip
        if not response.error_code:
            self.id, self.generation = response.member_id, response.generation_id
        return response

    def join_or_fail(self) -> Any:
        """Send JoinGroup, which must succeed."""
        result = self.join()
        check("JoinGroup", result.error_code)
        return result

    def sync(self, given: Mapping[str, bytes], generation: int | None = None) -> Any:
        kinds = SyncGroupRequest
        return self.send(
            kinds[3](
                group_id=self.group, member_id=self.id, group_instance_id=self.instance,
                generation_id=self.generation if generation is None else generation,
                assignments=[
                    kinds.SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                    for member_id, data in given.items()
                ],
            )
        )  # fmt: skip

    def heartbeat(self, generation: int | None = None, member_id: str | None = None) -> int:
        """The error of a heartbeat."""
        response = self.send(
            HeartbeatRequest[3](
                group_id=self.group, group_instance_id=self.instance,
                generation_id=self.generation if generation is None else generation,
                member_id=self.id if member_id is None else member_id,
            )
        )  # fmt: skip
        return int(response.error_code)

    def commit(self, topic: str, positions: Mapping[int, int], note: str = "") -> list[int]:
        """The errors of a commit, by partition."""
        kinds = OffsetCommitRequest.OffsetCommitRequestTopic
        request = kinds(
            name=topic,
            partitions=[
                kinds.OffsetCommitRequestPartition(
                    partition_index=p, committed_offset=offset, committed_metadata=note
                )
                for p, offset in positions.items()
            ],
        )
        response = self.send(
            OffsetCommitRequest[5](
                group_id=self.group, generation_id_or_member_epoch=self.generation,
                member_id=self.id, topics=[request],
            )
        )  # fmt: skip
        partitions = sorted(
            response.topics[0].partitions, key=lambda partition: int(partition.partition_index)
        )
        return [partition.error_code for partition in partitions]

    def positions(self) -> str:
        """All committed offsets of the group, in one line."""
        response = self.send(OffsetFetchRequest[3](group_id=self.group, topics=None))
        results = [
            f"{partition.partition_index}:{partition.committed_offset}{partition.metadata}"
            for topic in response.topics
            for partition in topic.partitions
        ]
        return " ".join(sorted(results)) or NO_POSITIONS

    def leave(self, *others: Member) -> list[int]:
        """The errors of a LeaveGroup request for this member and others."""
        kinds = LeaveGroupRequest
        leaving = [
            kinds.MemberIdentity(member_id=member.id, group_instance_id=member.instance)
            for member in (self, *others)
        ]
        response = self.send(kinds[3](group_id=self.group, members=leaving))
        check("LeaveGroup", response.error_code)
        return [member.error_code for member in response.members]


def member(brokers: Brokers, group: str, **more: Any) -> Member:
    return Member(brokers=brokers, group=group, node=brokers.coordinator(group), **more)


def join_alone(brokers: Brokers, group: str, **more: Any) -> Member:
    """The only member of a group, with an assignment."""
    joined = member(brokers, group, **more)
    joined.join_or_fail()
    check("SyncGroup", joined.sync({joined.id: b"all"}).error_code)
    return joined


def join_in_parallel(members: Sequence[Member]) -> list[Any]:
    """Members that join in parallel. Returns their responses, the leader's first."""
    run_all = members[0].brokers.environment.run_all
    result = run_all([member.join_or_fail for member in members])
    if len({member.generation for member in members}) > 1:  # a member missed the first generation
        result = run_all([member.join_or_fail for member in members])
    return sorted(result, key=lambda join: join.member_id != join.leader)
