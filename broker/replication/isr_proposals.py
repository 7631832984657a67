"""ISR proposals: AlterPartition requests to the controller and their responses (KIP-497)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from urteil.broker.replication.isr_state import IsrState
from urteil.broker.replication.partition import Partition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import AlterPartitionRequest, AlterPartitionResponse

log = logging.getLogger("alter-isr")

RETRY_S = 0.1

# Sends a request to the current controller. Raises ConnectionError or TimeoutError.
AskController = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]

# Errors after which the proposal is certainly not applied and our partition epoch is current.
_NOT_APPLIED = {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}
# Errors after which the outcome is unknown. LeaderAndIsr or StopReplica will bring newer state;
# until
# then the proposal stays in flight, and the high watermark counts both ISRs.
_AWAIT_NEW_STATE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
}


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A proposed ISR with the epochs it depends on. `joining` are the broker epochs of the new
    members as of their last fetch: a restarted broker may have lost records (KIP-903)."""

    partition: Partition
    isr: IsrState
    leader_epoch: int
    partition_epoch: int
    joining: Mapping[int, int]

    @property
    def is_current(self) -> bool:
        partition = self.partition
        return partition.is_leader and partition.isr is self.isr

    @property
    def key(self) -> tuple[UUID, int]:
        return self.partition.topic_id, self.partition.partition


class IsrProposals:
    """Sends proposals, one request in flight at a time. A proposal is retried until the controller
    responds or newer state replaces it.

    `shrinks`, `expands` and `refusals` count the controller's responses.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        ask: AskController,
        now_ms: Callable[[], float],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._ask = ask
        self._now_ms = now_ms
        self.shrinks = self.expands = self.refusals = 0
        self._pending: dict[tuple[UUID, int], _Proposal] = {}
        self._task: asyncio.Task[None] | None = None

    def propose(self, partition: Partition) -> None:
        """Send the partition's proposed ISR; the response is applied to the partition."""
        joining = {
            member: partition.followers[member].broker_epoch
            for member in partition.isr.proposed or ()
            if member not in partition.isr.committed
        }
        proposal = _Proposal(
            partition, partition.isr, partition.leader_epoch, partition.partition_epoch, joining
        )
        self._pending[proposal.key] = proposal
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        while self._pending:
            self._pending = {
                key: proposal for key, proposal in self._pending.items() if proposal.is_current
            }
            sent = dict(self._pending)
            if not sent:
                return
            try:
                response = await self._ask(self._request(list(sent.values())))
            except (ConnectionError, TimeoutError) as error:
                log.info("the controller did not respond, retrying: %s", error)
                await asyncio.sleep(RETRY_S)
                continue
            if response.error_code != ErrorCode.NONE:
                log.info("the controller answered %s", ErrorCode(response.error_code).name)
                await asyncio.sleep(RETRY_S)
                continue
            if self._apply_response(sent, response):
                await asyncio.sleep(RETRY_S)

    def _request(self, proposals: list[_Proposal]) -> AlterPartitionRequest:
        topics: dict[UUID, list[AlterPartitionRequest.PartitionData]] = {}
        for proposal in proposals:
            members = proposal.isr.proposed or ()
            topics.setdefault(proposal.partition.topic_id, []).append(
                AlterPartitionRequest.PartitionData(
                    partition_index=proposal.partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        AlterPartitionRequest.BrokerState(
                            broker_id=member, broker_epoch=proposal.joining.get(member, -1)
                        )
                        for member in members
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )

    def _apply_response(
        self, sent: dict[tuple[UUID, int], _Proposal], response: AlterPartitionResponse
    ) -> bool:
        """Settle the answered proposals; True when some must be sent again."""
        for topic in response.topics:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                proposal = sent.get(key)
                if proposal is None or not self._settle(proposal, answer):
                    continue
                if self._pending.get(key) is proposal:
                    del self._pending[key]
        return any(self._pending.get(key) is proposal for key, proposal in sent.items())

    def _settle(self, proposal: _Proposal, answer: AlterPartitionResponse.PartitionData) -> bool:
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            if proposal.is_current:
                self._count(proposal.isr)
                proposal.partition.apply_altered_isr(
                    answer.leader_epoch, answer.partition_epoch, tuple(answer.isr), self._now_ms()
                )
            return True
        self.refusals += 1
        log.info("%s: ISR %s refused: %s", proposal.partition, proposal.isr.proposed, error.name)
        if error in _NOT_APPLIED:
            proposal.partition.roll_back_isr(proposal.isr, self._now_ms())
            return True
        return error in _AWAIT_NEW_STATE

    def _count(self, applied: IsrState) -> None:
        if len(applied.proposed or ()) < len(applied.committed):
            self.shrinks += 1
        else:
            self.expands += 1

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
