"""DeleteTopics; only the controller serves it."""

from __future__ import annotations

from urteil.broker.api.authorization import topic_rights
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.server.broker import Broker
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse


@handler(ApiKey.DELETE_TOPICS, 0, 6)
async def delete_topics(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    allowed = topic_rights(broker, context)
    return await broker.controller.delete_topics(request, context.version, allowed)
