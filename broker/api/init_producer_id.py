"""InitProducerId for idempotent producers."""

from __future__ import annotations

import asyncio

from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.server.broker import Broker
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest, InitProducerIdResponse

NONE = -1
BLOCK_TIMEOUT_S = 3.0


@handler(ApiKey.INIT_PRODUCER_ID, 0, 5)
async def init_producer_id(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """A fresh producer id with epoch 0. Transactional ids have no coordinator here.

    COORDINATOR_LOAD_IN_PROGRESS, which every client tries again, while the controller gives no
    new block of ids (`RPCProducerIdManager.generateProducerId`).
    """
    if request.transactional_id is not None:
        empty = request.transactional_id == ""
        return InitProducerIdResponse(
            error_code=ErrorCode.INVALID_REQUEST if empty else ErrorCode.NOT_COORDINATOR,
            producer_epoch=NONE,
        )
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=NONE)
    try:
        async with asyncio.timeout(BLOCK_TIMEOUT_S):
            producer_id = await broker.producer_ids.next_id()
    except TimeoutError:
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=NONE
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
