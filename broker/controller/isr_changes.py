"""AlterPartition: the checks of proposed ISRs (KIP-497; `processAlterPartition`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.leader_selection import RECOVERED, RECOVERING
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import AlterPartitionRequest, AlterPartitionResponse
from urteil.broker.wire.primitives import ZERO_UUID
from urteil.broker.zookeeper.znodes import PartitionState

IDS_FROM = 2  # topics by id instead of by name, and INELIGIBLE_REPLICA
EPOCHS_FROM = 3  # members with their broker epochs (KIP-903)

Proposal = AlterPartitionRequest.PartitionData


@dataclass(slots=True)
class ProposalResults:
    """The states to write, and the answers that need no write (a state or an error)."""

    writes: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    answers: dict[TopicPartition, PartitionState | ErrorCode] = field(default_factory=dict)


def request_error(context: ControllerContext, request: AlterPartitionRequest) -> ErrorCode:
    """STALE_BROKER_EPOCH unless the sender is the registered broker of that epoch."""
    info = context.brokers.get(request.broker_id)
    if info is None or info.epoch != request.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def evaluate_proposals(
    context: ControllerContext, request: AlterPartitionRequest, version: int
) -> ProposalResults:
    """Evaluate every proposal of a request whose `request_error` is NONE."""
    results = ProposalResults()
    for topic in request.topics:
        name = topic_name(context, topic, version)
        for proposal in topic.partitions:
            if name is None:
                continue
            tp = (name, proposal.partition_index)
            result = _evaluate(context, request.broker_id, tp, proposal, version)
            if isinstance(result, ErrorCode) or result == context.states[tp]:
                results.answers[tp] = result
            else:
                results.writes[tp] = result
    return results


def topic_name(
    context: ControllerContext, topic: AlterPartitionRequest.TopicData, version: int
) -> str | None:
    """None for an unknown topic id; an unknown name is an error of each partition."""
    return context.names.get(topic.topic_id) if version >= IDS_FROM else topic.topic_name


def _evaluate(
    context: ControllerContext, leader: int, tp: TopicPartition, proposal: Proposal, version: int
) -> PartitionState | ErrorCode:
    """The state to write, the current state if it stays, or an error."""
    now = context.states.get(tp)
    if now is None or tp[0] in context.deleting:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    proposed = proposed_state(context, now, proposal, version)
    if proposal.partition_epoch > now.partition_epoch or proposal.leader_epoch > now.leader_epoch:
        return (
            ErrorCode.NOT_CONTROLLER
        )  # the leader has newer state: this is not the newest controller
    if proposal.leader_epoch < now.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if now.leader != leader:
        return ErrorCode.INVALID_REQUEST
    if set(proposed.isr) == set(now.isr) and proposed.recovery_state == now.recovery_state:
        return now  # a retry of a proposal that was written
    if proposal.partition_epoch < now.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return _members_error(context, leader, tp, proposed, now, proposal, version) or proposed


def _members_error(
    context: ControllerContext,
    leader: int,
    tp: TopicPartition,
    proposed: PartitionState,
    now: PartitionState,
    proposal: Proposal,
    version: int,
) -> ErrorCode:
    strangers = set(proposed.isr) - set(context.replicas(tp))
    if leader not in proposed.isr or strangers or len(set(proposed.isr)) != len(proposed.isr):
        return ErrorCode.INVALID_REQUEST
    if proposed.recovery_state == RECOVERING and now.recovery_state == RECOVERED:
        return ErrorCode.INVALID_REQUEST
    if proposed.recovery_state == RECOVERING and len(proposed.isr) > 1:
        return ErrorCode.INVALID_REQUEST
    # the leader may be shutting down without a successor
    eligible = context.live_brokers | {leader}
    stale = any(
        broker_state.broker_epoch != -1
        and broker_state.broker_id in context.brokers
        and broker_state.broker_epoch != context.brokers[broker_state.broker_id].epoch
        for broker_state in proposal.new_isr_with_epochs
    )
    if stale or not set(proposed.isr) <= eligible:
        if version >= IDS_FROM:
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.OPERATION_NOT_ATTEMPTED
    return ErrorCode.NONE


def proposed_state(
    context: ControllerContext, now: PartitionState, proposal: Proposal, version: int
) -> PartitionState:
    isr = (
        tuple(broker_state.broker_id for broker_state in proposal.new_isr_with_epochs)
        if version >= EPOCHS_FROM
        else tuple(proposal.new_isr)
    )
    return replace(
        now,
        isr=isr,
        recovery_state=proposal.leader_recovery_state,
        controller_epoch=context.epoch,
    )


def build_response(
    context: ControllerContext,
    request: AlterPartitionRequest,
    version: int,
    answers: Mapping[TopicPartition, PartitionState | ErrorCode],
) -> AlterPartitionResponse:
    """One answer for each proposal, in the order of the request."""
    topics = []
    for topic in request.topics:
        name = topic_name(context, topic, version)
        partitions = [
            _answer(
                proposal.partition_index,
                ErrorCode.UNKNOWN_TOPIC_ID
                if name is None
                else answers[name, proposal.partition_index],
            )
            for proposal in topic.partitions
        ]
        topics.append(
            AlterPartitionResponse.TopicData(
                topic_name=name or "",
                topic_id=topic.topic_id if version >= IDS_FROM else ZERO_UUID,
                partitions=partitions,
            )
        )
    return AlterPartitionResponse(topics=topics)


def _answer(
    partition: int, answer: PartitionState | ErrorCode
) -> AlterPartitionResponse.PartitionData:
    if isinstance(answer, ErrorCode):
        return AlterPartitionResponse.PartitionData(partition_index=partition, error_code=answer)
    return AlterPartitionResponse.PartitionData(
        partition_index=partition,
        leader_id=answer.leader,
        leader_epoch=answer.leader_epoch,
        isr=answer.isr,
        leader_recovery_state=answer.recovery_state,
        partition_epoch=answer.partition_epoch,
    )
