"""InitProducerId for idempotent and transactional producers."""

from __future__ import annotations

import asyncio

from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.api.transaction_errors import fenced_as
from urteil.broker.server.broker import Broker
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
FENCED_FROM = 4  # the version from which PRODUCER_FENCED is known
BLOCK_TIMEOUT_S = 3.0


@handler(ApiKey.INIT_PRODUCER_ID, 0, 5)
async def init_producer_id(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """A fresh producer id with epoch 0, or what the coordinator gives for a transactional id.

    COORDINATOR_LOAD_IN_PROGRESS, which every client tries again, while the controller gives no
    new block of ids (`RPCProducerIdManager.generateProducerId`).
    """
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NONE)
    if request.transactional_id is not None:
        has_id = request.producer_id != NONE
        found = await broker.transactions.initialise(
            request.transactional_id,
            request.transaction_timeout_ms,
            (request.producer_id, request.producer_epoch) if has_id else None,
        )
        return InitProducerIdResponse(
            error_code=fenced_as(found.error, knows=context.version >= FENCED_FROM),
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
        )
    try:
        async with asyncio.timeout(BLOCK_TIMEOUT_S):
            producer_id = await broker.producer_ids.next_id()
    except TimeoutError:
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=NONE
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
