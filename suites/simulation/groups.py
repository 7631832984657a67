"""Members of a consumer group: they join, heartbeat and commit, stall, leave, and commit once more
when they are no members; and a client that asks for committed offsets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from urteil.suites.simulation.client import CLIENT_TIMEOUT_MS, LOST, CoordinatedClient
from urteil.suites.simulation.history import Assignment, Beat, Commit, CommitRead

GROUP = "g"
SESSION_MS = 6_000
JOIN_MS = 2 * SESSION_MS
GROUP_KEY = 0
PROTOCOL = "lab"
NOT_A_MEMBER = (
    *(ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION),
    ErrorCode.FENCED_INSTANCE_ID,
)
NOT_COMMITTED = (
    *NOT_A_MEMBER,
    *(ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ErrorCode.REBALANCE_IN_PROGRESS,
)
"""Nothing was appended, for certain."""


class Rejoin(Exception):
    """The member has to join again."""


class Member(CoordinatedClient):
    """A member of the group, static with an `instance`."""

    def __init__(self, *given: Any, instance: str | None = None) -> None:
        super().__init__(*given, key=GROUP, key_type=GROUP_KEY)
        self.instance = instance
        if instance is not None:
            self.history.instances[self.name] = instance
        self._member_id = ""
        self._generation = -1
        self._assigned: list[int] = []
        self._positions: dict[int, int] = {}
        self._former: tuple[str, int, dict[int, int]] = "", -1, {}
        """Member id, generation and positions before the last rebalance."""

    async def run(self, topic: str, partitions: int, until_s: float) -> None:
        """Until it has joined or committed once more after that time."""
        while True:
            try:
                await self._join(topic, partitions)
                await self._read_positions(topic)
                if self.rng.random() < 0.3:
                    await self._commit_late(topic)
                await self._work(topic, until_s)
                await self._leave()
                return
            except Rejoin:
                await self.back_off()

    # joining

    async def request_member_id(self) -> None:
        """Get a member id without joining (KIP-394). Raises Rejoin without an answer."""
        await self._ask(self._join_request(), 5, JOIN_MS)

    def _join_request(self) -> JoinGroupRequest:
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"")]
        return JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=SESSION_MS,
            member_id=self._member_id, group_instance_id=self.instance, protocol_type=PROTOCOL,
            protocols=protocols,
        )  # fmt: skip

    async def _join(self, topic: str, partitions: int) -> None:
        joined = await self._ask(self._join_request(), 5, JOIN_MS)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
        self._check(joined.error_code)
        self._former = self._member_id, self._generation, self._positions
        self._member_id, self._generation = joined.member_id, joined.generation_id
        given = self._give(joined, topic, partitions)
        synced = await self._ask(
            SyncGroupRequest(
                group_id=GROUP, generation_id=self._generation, member_id=self._member_id,
                group_instance_id=self.instance, assignments=given,
            ), 3, JOIN_MS,
        )  # fmt: skip
        self._check(synced.error_code)
        self._assigned = json.loads(bytes(synced.assignment) or b"[]")
        self._positions = dict.fromkeys(self._assigned, 0)
        for partition in self._positions:
            self._note("assigned", self._member_id, topic, partition)

    def _give(
        self, joined: Any, topic: str, partitions: int
    ) -> list[SyncGroupRequest.SyncGroupRequestAssignment]:
        """The partitions of each member, if this one is the leader."""
        if joined.leader != self._member_id:
            return []
        members = sorted(member.member_id for member in joined.members)
        shares = {
            member: [n for n in range(partitions) if n % len(members) == at]
            for at, member in enumerate(members)
        }
        for member, share in shares.items():
            for partition in share:
                self._note("given", member, topic, partition)
        return [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member, assignment=json.dumps(share).encode()
            )
            for member, share in shares.items()
        ]

    def _note(self, event: str, member_id: str, topic: str, partition: int) -> None:
        self.history.assignments.append(
            Assignment(self.name, self._generation, member_id, event, topic, partition,
                       self._loop.time())
        )  # fmt: skip

    def _check(self, error_code: int) -> None:
        """Raises Rejoin after an error."""
        code = ErrorCode(error_code)
        if code in NOT_A_MEMBER:
            self._member_id = ""
        if code != ErrorCode.NONE:
            self.forget_coordinator_after(code)
            raise Rejoin

    async def _ask(self, message: Any, version: int, timeout_ms: float = CLIENT_TIMEOUT_MS) -> Any:
        """One answer of the coordinator. Raises Rejoin without one."""
        node = await self.find_coordinator()
        try:
            return await self.ask(node, message, version, timeout_ms)
        except LOST:
            self.forget_coordinator()
            raise Rejoin from None

    async def sync_again(self, topic: str) -> None:
        """Ask for the assignment once more: in one generation it is always the same."""
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self._generation, member_id=self._member_id,
            group_instance_id=self.instance, assignments=[],
        )  # fmt: skip
        synced = await self._ask(request, 3, JOIN_MS)
        self._check(synced.error_code)
        is_same = json.loads(bytes(synced.assignment) or b"[]") == self._assigned
        for partition in self._assigned:
            event = "kept" if is_same else "forgotten"
            self._note(event, self._member_id, topic, partition)

    # membership

    async def _read_positions(self, topic: str) -> None:
        for partition in self._positions:
            self._positions[partition] = await read_position(self, topic, partition)

    async def _work(self, topic: str, until_s: float) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(0.1, 0.7))
            whim = self.rng.random()
            if whim < 0.015:
                await self._leave()
                await self._commit_all(topic)
                self._member_id = ""
                raise Rejoin
            if whim < 0.03:
                await asyncio.sleep(1.5 * SESSION_MS / 1000)
                await self._commit_all(topic)
            if whim > 0.85:
                await self.sync_again(topic)
            code = await self._beat()
            if code in NOT_A_MEMBER:
                await self._commit_all(topic)
                if self.instance is not None:
                    await asyncio.sleep(self.rng.uniform(2.0, 8.0))
            self._check(code)
            if await self._commit_all(topic) and self._loop.time() > until_s:
                return

    async def _beat(self) -> int:
        """A heartbeat's answer. Raises Rejoin without one."""
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self._generation, member_id=self._member_id,
            group_instance_id=self.instance,
        )  # fmt: skip
        node, began_s = await self.find_coordinator(), self._loop.time()
        code = int((await self._ask(request, 3)).error_code)
        self.history.beats.append(
            Beat(self.name, self._member_id, self._generation, node, began_s, self._loop.time(),
                 ErrorCode(code).name)
        )  # fmt: skip
        return code

    async def _leave(self) -> None:
        member = LeaveGroupRequest.MemberIdentity(
            member_id=self._member_id, group_instance_id=self.instance
        )
        await self._ask(LeaveGroupRequest(group_id=GROUP, members=[member]), 3)

    async def _commit_late(self, topic: str) -> None:
        """Commit what was processed before the rebalance."""
        now = self._member_id, self._generation, self._positions
        self._member_id, self._generation, self._positions = self._former
        await self._commit_all(topic)
        self._member_id, self._generation, self._positions = now

    async def _commit_all(self, topic: str) -> bool:
        """Commit the next positions. Whether all commits were accepted."""
        outcomes = [await self._commit(topic, partition) for partition in sorted(self._positions)]
        return all(outcome == "ok" for outcome in outcomes)

    async def commit_without_membership(self, topic: str) -> None:
        """Commit an offset without a member id and a generation."""
        self._positions = {0: 0}
        await self._commit_all(topic)

    async def _commit(self, topic: str, partition: int) -> str:
        self._positions[partition] += self.rng.randint(1, 5)
        offset = self._positions[partition]
        part = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[part])]
        request = OffsetCommitRequest(
            group_id=GROUP, generation_id_or_member_epoch=self._generation,
            member_id=self._member_id, group_instance_id=self.instance, topics=topics,
        )  # fmt: skip
        node = await self.find_coordinator()
        began_s = self._loop.time()
        try:
            answer = await self.ask(node, request, 7, CLIENT_TIMEOUT_MS)
            code: ErrorCode | None = ErrorCode(answer.topics[0].partitions[0].error_code)
        except LOST:
            code = None
        outcome = "ok" if code == ErrorCode.NONE else "fail" if code in NOT_COMMITTED else "info"
        if code is None:
            self.forget_coordinator()
        else:
            self.forget_coordinator_after(code)
        error = None if outcome == "ok" else "lost" if code is None else code.name
        self.history.commits.append(
            Commit(self.name, self._generation, self._member_id, topic, partition, offset, began_s,
                   self._loop.time(), outcome, error)
        )  # fmt: skip
        return outcome


class PositionAsker(CoordinatedClient):
    """Asks for the group's committed offsets, from outside of the group."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given, key=GROUP, key_type=GROUP_KEY)

    async def run(self, topic: str, partitions: int, pause_s: float) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 1.5) * pause_s)
            await read_position(self, topic, self.rng.randrange(partitions))


async def read_position(client: CoordinatedClient, topic: str, partition: int) -> int:
    """The committed offset, 0 for none: until the coordinator answers."""
    request = OffsetFetchRequest(
        group_id=GROUP,
        topics=[
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])
        ],
    )
    while True:
        node = await client.find_coordinator()
        began_s = client.now_s()
        try:
            answer = await client.ask(node, request, 5, CLIENT_TIMEOUT_MS)
        except LOST:
            client.forget_coordinator()
            await client.back_off()
            continue
        part = answer.topics[0].partitions[0] if answer.topics else None
        code = ErrorCode(answer.error_code or (0 if part is None else part.error_code))
        if code == ErrorCode.NONE and part is not None:
            client.history.commit_reads.append(
                CommitRead(client.name, topic, partition, part.committed_offset, node, began_s,
                           client.now_s())
            )  # fmt: skip
            return max(0, int(part.committed_offset))
        client.forget_coordinator_after(code)
        await client.back_off()
