"""Requests that only the controller serves: a handler checks the rights and forwards the request.

Clients and administrators create, delete and extend topics and reassign partitions. Brokers send
AlterPartition (KIP-497), ControlledShutdown and AllocateProducerIds. Any other broker answers
NOT_CONTROLLER.
"""

from __future__ import annotations

from dataclasses import replace

from urteil.broker.api.authorization import require_cluster, topic_rights
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.quota_charges import mutation_quota
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

# the first versions whose clients know THROTTLING_QUOTA_EXCEEDED
CREATE_TOPICS_STRICT_FROM = 6
DELETE_TOPICS_STRICT_FROM = 5
CREATE_PARTITIONS_STRICT_FROM = 3


@handler(ApiKey.CREATE_TOPICS, 0, 7)
async def create_topics(
    broker: BrokerParts, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    allowed = topic_rights(broker, context)
    quota = mutation_quota(broker, context, strict_from=CREATE_TOPICS_STRICT_FROM)
    response = await broker.controller.create_topics(request, context.version, allowed, quota.take)
    return replace(response, throttle_time_ms=quota.wait_ms) if quota.wait_ms else response


@handler(ApiKey.DELETE_TOPICS, 0, 6, topics="responses")
async def delete_topics(
    broker: BrokerParts, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    allowed = topic_rights(broker, context)
    quota = mutation_quota(broker, context, strict_from=DELETE_TOPICS_STRICT_FROM)
    response = await broker.controller.delete_topics(request, context.version, allowed, quota.take)
    return replace(response, throttle_time_ms=quota.wait_ms) if quota.wait_ms else response


@handler(ApiKey.CREATE_PARTITIONS, 0, 3)
async def create_partitions(
    broker: BrokerParts, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    allowed = topic_rights(broker, context)
    quota = mutation_quota(broker, context, strict_from=CREATE_PARTITIONS_STRICT_FROM)
    response = await broker.controller.create_partitions(request, allowed, quota.take)
    return replace(response, throttle_time_ms=quota.wait_ms) if quota.wait_ms else response


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


@handler(ApiKey.ALTER_PARTITION, 0, 3, topics="topics")
async def alter_partition(
    broker: BrokerParts, context: RequestContext, request: AlterPartitionRequest
) -> AlterPartitionResponse:
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    return await broker.controller.alter_partition(request, context.version)


@handler(ApiKey.CONTROLLED_SHUTDOWN, 0, 3)
async def controlled_shutdown(
    broker: BrokerParts, context: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    return await broker.controller.controlled_shutdown(request)


@handler(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0)
async def allocate_producer_ids(
    broker: BrokerParts, context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    return await broker.controller.allocate_producer_ids(request)
