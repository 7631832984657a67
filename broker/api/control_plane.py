"""Requests of the controller to a broker: LeaderAndIsr, StopReplica, UpdateMetadata.

None is handled before this broker is registered (Apache Kafka serves no requests before).
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from urteil.broker.api.authorization import require_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import in_turns
from urteil.broker.replication.metadata_cache import States, partition_states_in, states_in
from urteil.broker.replication.role_changes import states_of
from urteil.broker.security.acls.acl_model import Operation
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
from urteil.broker.zookeeper.znodes import TOPICS


@handler(ApiKey.LEADER_AND_ISR, 0, 7)
async def leader_and_isr(
    broker: BrokerParts, context: RequestContext, request: LeaderAndIsrRequest
) -> LeaderAndIsrResponse:
    """Apply the roles, after the settings of new topics are loaded."""
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    await broker.registration.await_registration()
    topics = {topic: topic_id for topic, topic_id, _ in states_of(request)}
    for topic, topic_id in topics.items():
        if broker.metadata.topic_ids.get(topic, topic_id) != topic_id:
            broker.topic_settings.forget(
                topic
            )  # this broker did not learn of the deletion of an earlier topic
    await broker.topic_settings.load(topics)
    async with broker.control.turn:
        return await in_turns(broker.control.leader_and_isr(request))


@handler(ApiKey.STOP_REPLICA, 0, 4)
async def stop_replica(
    broker: BrokerParts, context: RequestContext, request: StopReplicaRequest
) -> StopReplicaResponse:
    """Stop replicas. The settings of a topic without a log here are dropped: it may be created anew
    with others."""
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    await broker.registration.await_registration()
    async with broker.control.turn:
        response = await in_turns(broker.control.stop_replica(request))
    here = {log.topic for log in broker.logs.logs()}
    for stopped in response.partition_errors:
        if stopped.topic_name not in here:
            broker.topic_settings.forget(stopped.topic_name)
    return response


@handler(ApiKey.UPDATE_METADATA, 0, 8)
async def update_metadata(
    broker: BrokerParts, context: RequestContext, request: UpdateMetadataRequest
) -> UpdateMetadataResponse:
    """Apply the controller's view of the cluster."""
    require_cluster(broker, context, Operation.CLUSTER_ACTION)
    await broker.registration.await_registration()
    states = await in_turns(states_in(request))
    async with broker.control.turn:
        return _apply_update(broker, request, states)


def _apply_update(
    broker: BrokerParts, request: UpdateMetadataRequest, states: States
) -> UpdateMetadataResponse:
    error = broker.control.fence(request.controller_epoch, request.broker_epoch)
    if error is not ErrorCode.NONE:
        return UpdateMetadataResponse(error_code=error)
    before = set(broker.metadata.brokers)
    known = dict(broker.metadata.topic_ids)
    if known and (request.broker_epoch, request.controller_epoch) != broker.metadata.terms:
        broker.groups.tasks.spawn(_forget_deleted(broker, known))
    deleted = broker.metadata.update(request, states)
    broker.control.apply_metadata(
        (topic, state) for topic, _, state in partition_states_in(request)
    )
    if deleted:
        broker.groups.tasks.spawn(broker.group_maintenance.topics_deleted(deleted))
    others = (
        name for name, topic_id in known.items() if broker.metadata.topic_ids.get(name) != topic_id
    )
    for topic in {topic for topic, _ in deleted}.union(others):
        broker.topic_settings.forget(topic)  # StopReplica reaches replicas only
    gone = before - set(broker.metadata.brokers)
    for left_broker in gone:
        broker.channels.forget(left_broker)
    if gone:
        broker.replicas.shrink_isrs()  # the high watermark waits for no broker that left
    return UpdateMetadataResponse()


async def _forget_deleted(broker: BrokerParts, known: Mapping[str, UUID]) -> None:
    """After a new registration or a new controller, drop known topics that ZooKeeper lacks.

    No request reports what was deleted meanwhile.
    """
    await broker.zk.sync(TOPICS)
    there = set(await broker.zk.children(TOPICS))
    gone = {name: topic_id for name, topic_id in known.items() if name not in there}
    for topic in broker.metadata.forget(gone):
        broker.topic_settings.forget(topic)
