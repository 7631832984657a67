"""A member of a consumer group that says only what it is told to say."""

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

from urteil.harness.conformance.question import Brokers, check, together
from urteil.harness.protocol.framing import encode_string

SESSION_MS, REBALANCE_MS = 6_000, 2_000
CONSUMER = "consumer"


NO_POSITIONS = "none"


def subscription(topic: str) -> bytes:
    """What a consumer of one topic tells its group (version 0)."""
    return struct.pack(">hi", 0, 1) + encode_string(topic) + struct.pack(">i", -1)


@dataclass(slots=True, kw_only=True)
class Member:
    """`id` and `generation` are those of its last join."""

    brokers: Brokers
    group: str
    node: int
    protocols: Mapping[str, bytes] = field(default_factory=lambda: {"range": subscription("none")})
    instance: str | None = None
    session_ms: int = SESSION_MS
    kind: str = CONSUMER
    id: str = ""
    generation: int = -1

    def ask(self, request: Any) -> Any:
        return self.brokers.ask(self.node, request)

    def join(self, version: int = 3) -> Any:
        """The answer; who is not refused has its id and its generation."""
        kinds = JoinGroupRequest
        told = self.ask(
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
        if not told.error_code:
            self.id, self.generation = told.member_id, told.generation_id
        return told

    def joined(self) -> Any:
        """The same, where it must not be refused."""
        told = self.join()
        check("JoinGroup", told.error_code)
        return told

    def sync(self, given: Mapping[str, bytes], generation: int | None = None) -> Any:
        kinds = SyncGroupRequest
        return self.ask(
            kinds[3](
                group_id=self.group, member_id=self.id, group_instance_id=self.instance,
                generation_id=self.generation if generation is None else generation,
                assignments=[
                    kinds.SyncGroupRequestAssignment(member_id=one, assignment=what)
                    for one, what in given.items()
                ],
            )
        )  # fmt: skip

    def heartbeat(self, generation: int | None = None, member_id: str | None = None) -> int:
        """The error."""
        told = self.ask(
            HeartbeatRequest[3](
                group_id=self.group, group_instance_id=self.instance,
                generation_id=self.generation if generation is None else generation,
                member_id=self.id if member_id is None else member_id,
            )
        )  # fmt: skip
        return int(told.error_code)

    def commit(self, topic: str, positions: Mapping[int, int], note: str = "") -> list[int]:
        """The errors, by partition."""
        kinds = OffsetCommitRequest.OffsetCommitRequestTopic
        asked = kinds(
            name=topic,
            partitions=[
                kinds.OffsetCommitRequestPartition(
                    partition_index=p, committed_offset=offset, committed_metadata=note
                )
                for p, offset in positions.items()
            ],
        )
        told = self.ask(
            OffsetCommitRequest[5](
                group_id=self.group, generation_id_or_member_epoch=self.generation,
                member_id=self.id, topics=[asked],
            )
        )  # fmt: skip
        parts = sorted(told.topics[0].partitions, key=lambda one: int(one.partition_index))
        return [one.error_code for one in parts]

    def positions(self) -> str:
        """All that its group has, in a line."""
        told = self.ask(OffsetFetchRequest[3](group_id=self.group, topics=None))
        found = [
            f"{one.partition_index}:{one.committed_offset}{one.metadata}"
            for topic in told.topics
            for one in topic.partitions
        ]
        return " ".join(sorted(found)) or NO_POSITIONS

    def leave(self, *others: Member) -> list[int]:
        """The errors of its leaving, and theirs, in one request."""
        kinds = LeaveGroupRequest
        leaving = [
            kinds.MemberIdentity(member_id=one.id, group_instance_id=one.instance)
            for one in (self, *others)
        ]
        told = self.ask(kinds[3](group_id=self.group, members=leaving))
        check("LeaveGroup", told.error_code)
        return [one.error_code for one in told.members]


def member(brokers: Brokers, group: str, **more: Any) -> Member:
    return Member(brokers=brokers, group=group, node=brokers.coordinator(group), **more)


def alone(brokers: Brokers, group: str, **more: Any) -> Member:
    """The only member of a group, which has given itself something."""
    one = member(brokers, group, **more)
    one.joined()
    check("SyncGroup", one.sync({one.id: b"all"}).error_code)
    return one


def pair(members: Sequence[Member]) -> list[Any]:
    """Members that join at one time: their answers, the leader's first."""
    told = together([one.joined for one in members])
    if len({one.generation for one in members}) > 1:  # one was too late for the first generation
        told = together([one.joined for one in members])
    return sorted(told, key=lambda one: one.member_id != one.leader)
