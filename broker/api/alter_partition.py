"""AlterPartition, for leaders that ask the controller to write their ISR (KIP-497)."""

from __future__ import annotations

from urteil.broker.api.authorization import require_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.security.acls import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import AlterPartitionRequest, AlterPartitionResponse


@handler(ApiKey.ALTER_PARTITION, 0, 3, topics="topics")
async def alter_partition(
    broker: BrokerParts, context: RequestContext, request: AlterPartitionRequest
) -> AlterPartitionResponse:
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    return await broker.controller.alter_partition(request, context.version)
