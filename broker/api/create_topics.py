"""CreateTopics; only the controller serves it."""

from __future__ import annotations

from urteil.broker.api.authorization import topic_rights
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.server.broker import Broker
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import CreateTopicsRequest, CreateTopicsResponse


@handler(ApiKey.CREATE_TOPICS, 0, 7)
async def create_topics(
    broker: Broker, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    allowed = topic_rights(broker, context)
    return await broker.controller.create_topics(request, context.version, allowed)
