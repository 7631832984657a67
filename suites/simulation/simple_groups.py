"""Clients of groups without members: they commit offsets, delete them or let them expire, and read
them.

A request without an answer may be executed at any later time. After one, a client continues with a
group of another name, so that what a group must have is always known.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from urteil.suites.simulation.client import CLIENT_TIMEOUT_MS, LOST, CoordinatedClient
from urteil.suites.simulation.groups import GROUP_KEY
from urteil.suites.simulation.history import NO_OFFSET, ExpectedOffset, OffsetRead

KEPT, KEPT_OFFSET = "kept", 3
PARTITION = 0
OTHER_PARTITION = 1
"""Its offset remains when that of `PARTITION` is deleted: the group itself is not deleted."""
PAUSE_S = 0.8
READS = 3
RETENTION_MS = 4_000
"""Of the offsets that expire (OffsetCommit version 3)."""
CHECK_MS = 1_000
"""How often a coordinator removes expired offsets (offsets.retention.check.interval.ms)."""
_COMMIT, _COMMIT_WITH_RETENTION = 7, 3


def leader_epoch_of(offset: int) -> int:
    """The leader epoch that is committed with an offset."""
    return NO_OFFSET if offset == NO_OFFSET else offset % 5


class SimpleGroupClient(CoordinatedClient):
    """The offsets topic has one partition: its leader coordinates the groups of all names."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given, key=KEPT, key_type=GROUP_KEY)

    async def keep(self, topic: str) -> None:
        """Commit one offset, and read it again and again."""
        while not await self._commit(KEPT, topic, KEPT_OFFSET):
            await self.back_off()
        expected = ExpectedOffset(KEPT, KEPT_OFFSET, self.now_s())
        while True:
            await self._read_soon(topic, expected)

    async def delete(self, topic: str) -> None:
        """In one group after another, commit offsets, read one, and delete it. Read the deleted
        offsets of all groups."""
        deleted: list[ExpectedOffset] = []
        for n in itertools.count(1):
            group = f"deleted-{n}"
            if await self._commit(group, topic, n):
                await self._read_soon(topic, ExpectedOffset(group, n, self.now_s()))
                node, invoke_s = await self.find_coordinator(), self.now_s()
                if await self._delete(group, topic):
                    deleted.append(ExpectedOffset(group, NO_OFFSET, self.now_s(), node, invoke_s))
            for _ in range(READS):
                await self._read_soon(topic, *self.rng.choices(deleted, k=1 if deleted else 0))

    async def expire(self, topic: str) -> None:
        """In one group after another, commit an offset that expires, and read it afterwards."""
        for n in itertools.count(1):
            group = f"expired-{n}"
            if await self._commit(group, topic, n, RETENTION_MS):
                await asyncio.sleep((RETENTION_MS + 2 * CHECK_MS) / 1000)
                expected = ExpectedOffset(group, NO_OFFSET, self.now_s())
                for _ in range(READS):
                    await self._read_soon(topic, expected)
            await self.back_off()

    async def _commit(
        self, group: str, topic: str, offset: int, retention_ms: int | None = None
    ) -> bool:
        """Whether the commit was accepted."""
        is_kept = retention_ms is None
        parts = [
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata="",
                committed_leader_epoch=leader_epoch_of(offset) if is_kept else NO_OFFSET,
            )
            for partition in (PARTITION, OTHER_PARTITION)
        ]  # fmt: skip
        named = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=parts)
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[named],
            retention_time_ms=NO_OFFSET if retention_ms is None else retention_ms,
        )  # fmt: skip
        return await self._is_done(request, _COMMIT if is_kept else _COMMIT_WITH_RETENTION)

    async def _delete(self, group: str, topic: str) -> bool:
        """Whether the deletion was accepted."""
        part = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=PARTITION)
        named = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=[part])
        return await self._is_done(OffsetDeleteRequest(group_id=group, topics=[named]), 0)

    async def _is_done(self, request: Any, version: int) -> bool:
        """Whether the answer has no error."""
        answer = await self._ask(request, version)
        return answer is not None and self._code(answer) == ErrorCode.NONE

    async def _read_soon(self, topic: str, *expected: ExpectedOffset) -> None:
        """Pause, and read the offsets of the groups."""
        await asyncio.sleep(self.rng.uniform(0.0, 2 * PAUSE_S))
        for each in expected:
            await self._read(topic, each)

    async def _read(self, topic: str, expected: ExpectedOffset) -> None:
        named = OffsetFetchRequest.OffsetFetchRequestTopic(
            name=topic, partition_indexes=[PARTITION]
        )
        node, invoke_s = await self.find_coordinator(), self.now_s()
        answer = await self._ask(OffsetFetchRequest(group_id=expected.group, topics=[named]), 5)
        if answer is not None and self._code(answer) == ErrorCode.NONE:
            part = answer.topics[0].partitions[0]
            self.history.offset_reads.append(
                OffsetRead(expected, part.committed_offset, part.committed_leader_epoch, node,
                           invoke_s, self.now_s())
            )  # fmt: skip

    def _code(self, answer: Any) -> ErrorCode:
        """The first error of an answer about one partition."""
        code = ErrorCode(getattr(answer, "error_code", ErrorCode.NONE))
        if code == ErrorCode.NONE:
            code = ErrorCode(answer.topics[0].partitions[0].error_code)
        self.forget_coordinator_after(code)
        return code

    async def _ask(self, message: Any, version: int) -> Any:
        """The answer; None without one."""
        node = await self.find_coordinator()
        try:
            return await self.ask(node, message, version, CLIENT_TIMEOUT_MS)
        except LOST:
            self.forget_coordinator()
            await self.back_off()
            return None
