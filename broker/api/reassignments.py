"""AlterPartitionReassignments and ListPartitionReassignments; only the controller serves them."""

from __future__ import annotations

from urteil.broker.api.authorization import require_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.security.acls import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@handler(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 0)
async def alter_partition_reassignments(
    broker: BrokerParts, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    require_cluster(broker, context, Operation.ALTER)
    return await broker.controller.alter_partition_reassignments(request)


@handler(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0)
async def list_partition_reassignments(
    broker: BrokerParts, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    require_cluster(broker, context, Operation.DESCRIBE)
    return await broker.controller.list_partition_reassignments(request)
