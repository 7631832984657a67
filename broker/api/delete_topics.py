"""DeleteTopics; only the controller serves it."""

from __future__ import annotations

from dataclasses import replace

from urteil.broker.api.authorization import topic_rights
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.quotas import mutations_of
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse

STRICT_FROM = 5  # the version from which THROTTLING_QUOTA_EXCEEDED is known


@handler(ApiKey.DELETE_TOPICS, 0, 6, topics="responses")
async def delete_topics(
    broker: BrokerParts, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    allowed = topic_rights(broker, context)
    mutations = mutations_of(broker, context, strict_from=STRICT_FROM)
    answer = await broker.controller.delete_topics(
        request, context.version, allowed, mutations.take
    )
    return replace(answer, throttle_time_ms=mutations.wait_ms) if mutations.wait_ms else answer
