"""AllocateProducerIds, for brokers that ask the controller for a block of producer ids."""

from __future__ import annotations

from urteil.broker.api.authorization import require_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.security.acls import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


@handler(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0)
async def allocate_producer_ids(
    broker: BrokerParts, context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    return await broker.controller.allocate_producer_ids(request)
