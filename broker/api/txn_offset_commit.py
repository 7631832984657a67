"""TxnOffsetCommit: offsets of a group that become visible when the transaction commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from urteil.broker.api.authorization import may
from urteil.broker.api.offset_commit_checks import CheckedCommits
from urteil.broker.api.registry import RequestContext, RequestError, handler
from urteil.broker.groups.coordinator import OFFSET_ERRORS, OFFSETS_TOPIC
from urteil.broker.groups.records import OffsetCommitValue
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.transactions.partition_verifier import Claim
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.batches import NO_SEQUENCE
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

LOADING_FROM = 2  # older producers may crash on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)
ABORTABLE_FROM = 4  # the version from which TRANSACTION_ABORTABLE is known

Storable = Mapping[tuple[str, int], OffsetCommitValue]


@handler(ApiKey.TXN_OFFSET_COMMIT, 0, 4, topics="topics")
async def txn_offset_commit(
    broker: BrokerParts, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Commit offsets together; partitions that cannot be committed carry their own error."""
    resource = (ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    if not may(broker, context, Operation.WRITE, *resource):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        raise RequestError(error)
    if not may(broker, context, Operation.READ, ResourceType.GROUP, request.group_id):
        raise RequestError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    positions = CheckedCommits(broker, context, request.topics)
    error = ErrorCode.NONE
    if positions.permitted:
        error = await _commit(broker, context, request, positions.storable)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < LOADING_FROM:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=index, error_code=outcome
                    )
                    for index, outcome in answers
                ],
            )
            for name, answers in positions.results(error)
        ]
    )


async def _commit(
    broker: BrokerParts,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    storable: Storable,
) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    error = broker.groups.register_group(request.group_id)
    if error is not ErrorCode.NONE:
        return error
    where = (OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))
    verified = await broker.verifier.verify(
        request.transactional_id,
        {where: Claim(request.producer_id, request.producer_epoch, NO_SEQUENCE)},
        knows_abortable=context.version >= ABORTABLE_FROM,
    )
    refused = verified.errors.get(where)
    if refused is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if refused is not None:
        return OFFSET_ERRORS.get(refused, refused)
    return await broker.groups.commit_in_transaction(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        (request.producer_id, request.producer_epoch),
        verified.guards[where],
        storable,
    )
