"""Writers whose transactions commit offsets, as an application does that reads, processes and
writes exactly once (KIP-447)."""

from __future__ import annotations

from typing import Any

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AddOffsetsToTxnRequest,
    FindCoordinatorRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from urteil.suites.simulation.client import CLIENT_TIMEOUT_MS, LOST
from urteil.suites.simulation.groups import GROUP, GROUP_KEY
from urteil.suites.simulation.history import Commit, StableRead, Txn, TxnCommit
from urteil.suites.simulation.transactions import AGAIN, Refused, Writer

NOT_COORDINATOR = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
PARTITION = 0


class Copier(Writer):
    """Every second transaction commits the next offset of the copier's own group, which has no
    members. The copier reads the stable offset in such a transaction and after every one."""

    def __init__(self, *given: Any, transactional_id: str) -> None:
        super().__init__(*given, transactional_id=transactional_id)
        self._group = f"group of {transactional_id}"
        self._offset = 0
        self._group_node: int | None = None

    async def _write(self, txn: Txn, topic: str, partitions: int) -> None:
        await super()._write(txn, topic, partitions)
        if self.rng.random() < 0.5:
            await self._commit_offset(txn, topic)
            if self.rng.random() < 0.5:
                await self._read_offset(topic, txn.number)

    async def _transaction(self, topic: str, partitions: int) -> None:
        await super()._transaction(topic, partitions)
        await self._read_offset(topic, None)

    async def _commit_offset(self, txn: Txn, topic: str) -> None:
        """Raises Refused."""
        await self._add_offsets()
        self._offset += 1
        commit = TxnCommit(self.name, self._group, txn, self._offset, self.now_s())
        self.history.txn_commits.append(commit)
        request = self._commit_request(topic)
        while True:
            answer = await self._ask_group(request, 3)
            if answer is None:
                continue
            code = ErrorCode(answer.topics[0].partitions[0].error_code)
            if code == ErrorCode.NONE:
                commit.is_accepted = True
                return
            if code not in AGAIN:
                raise Refused(code)
            self._group_node = None
            await self.back_off()

    async def _add_offsets(self) -> None:
        """Raises Refused."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id, producer_id=self._producer[0],
            producer_epoch=self._producer[1], group_id=self._group,
        )  # fmt: skip
        while code := ErrorCode((await self._ask_coordinator(request, 2)).error_code):
            await self._again_or_refused(code)

    def _commit_request(
        self, topic: str, member_id: str = "", generation: int = -1
    ) -> TxnOffsetCommitRequest:
        part = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=PARTITION, committed_offset=self._offset, committed_metadata=""
        )
        named = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=topic, partitions=[part])
        return TxnOffsetCommitRequest(
            transactional_id=self._id, group_id=self._group, producer_id=self._producer[0],
            producer_epoch=self._producer[1], member_id=member_id, generation_id=generation,
            topics=[named],
        )  # fmt: skip

    async def _read_offset(self, topic: str, within: int | None) -> None:
        """One request for the stable offset."""
        named = OffsetFetchRequest.OffsetFetchRequestTopic(
            name=topic, partition_indexes=[PARTITION]
        )
        request = OffsetFetchRequest(group_id=self._group, require_stable=True, topics=[named])
        node, began_s = await self._find_group_coordinator(), self.now_s()
        answer = await self._ask_group(request, 7)
        if answer is None:
            return
        part = answer.topics[0].partitions[0] if answer.topics else None
        code = ErrorCode(answer.error_code or (0 if part is None else part.error_code))
        if code in NOT_COORDINATOR:
            self._group_node = None
        elif part is not None and code == ErrorCode.NONE:
            self.history.stable_reads.append(
                StableRead(self.name, self._group, within, part.committed_offset, node, began_s,
                           self.now_s())
            )  # fmt: skip

    async def _ask_group(self, message: Any, version: int) -> Any:
        """The answer of the group's coordinator; None without one."""
        node = await self._find_group_coordinator()
        try:
            return await self.ask(node, message, version, CLIENT_TIMEOUT_MS)
        except LOST:
            self._group_node = None
            await self.back_off()
            return None

    async def _find_group_coordinator(self) -> int:
        find = FindCoordinatorRequest(key=self._group, key_type=GROUP_KEY)
        while self._group_node is None:
            found = await self.any_node(find, 2)
            if found.error_code == ErrorCode.NONE:
                self._group_node = found.node_id
            else:
                await self.back_off()
        return self._group_node


class LateCopier(Copier):
    """Commits an offset as a member of an earlier generation, in one transaction that it aborts."""

    async def commit_as(self, member_id: str, generation: int, topic: str) -> None:
        await self._initialise()
        self._group, self._offset = GROUP, 1
        txn = Txn(
            self.name, self._session, 1, self._id, *self._producer, self.now_s(), *self._init_s
        )
        self.history.txns.append(txn)
        try:
            await self._add_offsets()
            invoke_s = self.now_s()
            answer = await self._ask_group(self._commit_request(topic, member_id, generation), 3)
            if answer is not None:
                code = ErrorCode(answer.topics[0].partitions[0].error_code)
                self.history.commits.append(
                    Commit(self.name, generation, member_id, topic, PARTITION, self._offset,
                           invoke_s, self.now_s(), "fail" if code else "ok",
                           code.name if code else None)
                )  # fmt: skip
            await self._end(txn, commits=False)
        except Refused:
            pass
        txn.end_s = self.now_s()
