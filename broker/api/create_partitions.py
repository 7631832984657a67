"""CreatePartitions; only the controller serves it."""

from __future__ import annotations

from dataclasses import replace

from urteil.broker.api.authorization import topic_rights
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.quotas import mutations_of
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import CreatePartitionsRequest, CreatePartitionsResponse

STRICT_FROM = 3  # the version from which THROTTLING_QUOTA_EXCEEDED is known


@handler(ApiKey.CREATE_PARTITIONS, 0, 3)
async def create_partitions(
    broker: BrokerParts, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    allowed = topic_rights(broker, context)
    mutations = mutations_of(broker, context, strict_from=STRICT_FROM)
    answer = await broker.controller.create_partitions(request, allowed, mutations.take)
    return replace(answer, throttle_time_ms=mutations.wait_ms) if mutations.wait_ms else answer
