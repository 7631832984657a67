"""CreatePartitions; only the controller serves it."""

from __future__ import annotations

from urteil.broker.api.authorization import topic_rights
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.server.broker import Broker
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import CreatePartitionsRequest, CreatePartitionsResponse


@handler(ApiKey.CREATE_PARTITIONS, 0, 3)
async def create_partitions(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    allowed = topic_rights(broker, context)
    return await broker.controller.create_partitions(request, allowed)
