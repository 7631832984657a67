"""What the controller sends to every broker: LeaderAndIsr, StopReplica, UpdateMetadata.

None is looked at before this broker is registered (Apache Kafka serves nobody before).
"""

from __future__ import annotations

from urteil.broker.api.authorization import require_cluster
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.replication.control import states_of
from urteil.broker.security.acls import Operation
from urteil.broker.server.broker import Broker
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)


@handler(ApiKey.LEADER_AND_ISR, 0, 7)
async def leader_and_isr(
    broker: Broker, context: RequestContext, request: LeaderAndIsrRequest
) -> LeaderAndIsrResponse:
    """Take the roles, once the settings of topics that are new here were read."""
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    await broker.registration.registered()
    await broker.topic_settings.know({topic for topic, _, _ in states_of(request)})
    return broker.control.leader_and_isr(request)


@handler(ApiKey.STOP_REPLICA, 0, 4)
async def stop_replica(
    broker: Broker, context: RequestContext, request: StopReplicaRequest
) -> StopReplicaResponse:
    """Give up replicas. A topic that is gone may come again with other settings; a log that stays
    goes by its topic's."""
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    await broker.registration.registered()
    response = broker.control.stop_replica(request)
    here = {log.topic for log in broker.logs.logs()}
    for stopped in response.partition_errors:
        if stopped.topic_name not in here:
            broker.topic_settings.forget(stopped.topic_name)
    return response


@handler(ApiKey.UPDATE_METADATA, 0, 8)
async def update_metadata(
    broker: Broker, context: RequestContext, request: UpdateMetadataRequest
) -> UpdateMetadataResponse:
    """Take in the controller's view of the cluster."""
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    await broker.registration.registered()
    error = broker.control.fence(request.controller_epoch, request.broker_epoch)
    if error is not ErrorCode.NONE:
        return UpdateMetadataResponse(error_code=error)
    before = set(broker.metadata.brokers)
    deleted = broker.metadata.update(request)
    if deleted:
        broker.groups.tasks.spawn(broker.group_administration.topics_deleted(deleted))
    for topic, _ in deleted:
        broker.topic_settings.forget(topic)  # StopReplica tells its replicas alone
    gone = before - set(broker.metadata.brokers)
    for one in gone:
        broker.channels.forget(one)
    if gone:
        broker.replicas.shrink_isrs()  # the high watermark need not wait for who was joining
    return UpdateMetadataResponse()
