"""InitProducerId for idempotent and transactional producers."""

from __future__ import annotations

import asyncio

from urteil.broker.api.authorization import may, may_any, may_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.api.transaction_errors import fencing_error
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
FENCED_FROM = 4  # the version from which PRODUCER_FENCED is known
BLOCK_TIMEOUT_S = 3.0


@handler(ApiKey.INIT_PRODUCER_ID, 0, 5)
async def init_producer_id(
    broker: BrokerParts, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """A new producer id with epoch 0, or the coordinator's for a transactional id.

    COORDINATOR_LOAD_IN_PROGRESS, after which every client retries, while the controller provides
    no new block of ids (`RPCProducerIdManager.generateProducerId`).
    """
    error = _authorization_error(broker, context, request)
    if error is ErrorCode.NONE and (request.producer_id == NONE) != (
        request.producer_epoch == NONE
    ):
        error = ErrorCode.INVALID_REQUEST
    if error is not ErrorCode.NONE:
        return InitProducerIdResponse(error_code=error, producer_epoch=NONE)
    if request.transactional_id is not None:
        has_id = request.producer_id != NONE
        outcome = await broker.transactions.initialise(
            request.transactional_id,
            request.transaction_timeout_ms,
            (request.producer_id, request.producer_epoch) if has_id else None,
        )
        return InitProducerIdResponse(
            error_code=fencing_error(outcome.error, knows=context.version >= FENCED_FROM),
            producer_id=outcome.producer_id,
            producer_epoch=outcome.producer_epoch,
        )
    try:
        async with asyncio.timeout(BLOCK_TIMEOUT_S):
            producer_id = await broker.producer_ids.next_id()
    except TimeoutError:
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=NONE
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _authorization_error(
    broker: BrokerParts, context: RequestContext, request: InitProducerIdRequest
) -> ErrorCode:
    """Idempotence requires IDEMPOTENT_WRITE, or WRITE on any topic (KIP-679)."""
    if request.transactional_id is not None:
        resource = (ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        if not may(broker, context, Operation.WRITE, *resource):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not may_cluster(broker, context, Operation.IDEMPOTENT_WRITE, quiet=True) and not may_any(
        broker, context, Operation.WRITE, ResourceType.TOPIC
    ):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.NONE
