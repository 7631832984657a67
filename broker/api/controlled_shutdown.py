"""ControlledShutdown, for brokers that ask the controller to take their leaders away."""

from __future__ import annotations

from urteil.broker.api.authorization import require_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.security.acls import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse


@handler(ApiKey.CONTROLLED_SHUTDOWN, 0, 3)
async def controlled_shutdown(
    broker: BrokerParts, context: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    return await broker.controller.controlled_shutdown(request)
