"""Metadata and DescribeCluster: the cluster by the controller's last UpdateMetadata."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from uuid import UUID

from urteil.broker.api.authorization import (
    allowed_names,
    cluster_operations,
    may_cluster,
    operations,
)
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.base.topic_names import is_internal, is_valid
from urteil.broker.replication.metadata_cache import MetadataCache, PartitionState
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from urteil.broker.wire.primitives import ZERO_UUID

Topic = MetadataResponse.MetadataResponseTopic
BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2
IDS_FROM = 12
FIRST_UPDATE_S = 5.0


@handler(ApiKey.METADATA, 0, 12, topics="topics")
async def metadata(
    broker: BrokerParts, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Brokers on the client's listener, and topics; unknown topics may be created."""
    if context.version < IDS_FROM and any(map(_is_by_id, request.topics or ())):
        return _failed_response(request, ErrorCode.INVALID_REQUEST)
    if any(topic.name is None and topic.topic_id == ZERO_UUID for topic in request.topics or ()):
        return _failed_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    await broker.metadata.await_first_update(FIRST_UPDATE_S)
    if request.topics is None or (context.version == 0 and not request.topics):
        names = sorted(broker.metadata.topics)
        allowed = _describable_topics(broker, context, names, quiet=True)
        topics = await _known_topics(broker, context, [name for name in names if name in allowed])
    else:
        topics = await _requested_topics(broker, context, request)
    if request.include_topic_authorized_operations:
        topics = [_with_operations(broker, context, topic) async for topic in yield_items(topics)]
    controller_id = broker.metadata.controller_id
    answer = MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=live_endpoint.id,
                host=live_endpoint.host,
                port=live_endpoint.port,
                rack=broker.metadata.brokers[live_endpoint.id].rack,
            )
            for live_endpoint in broker.metadata.live_endpoints(context.listener)
        ],
        cluster_id=broker.cluster_id,
        controller_id=-1 if controller_id is None else controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        bits = cluster_operations(broker, context)
        return replace(answer, cluster_authorized_operations=bits)
    return answer


def _describable_topics(
    broker: BrokerParts, context: RequestContext, names: Iterable[str], *, quiet: bool = False
) -> Collection[str]:
    return allowed_names(
        broker, context, Operation.DESCRIBE, ResourceType.TOPIC, names, quiet=quiet
    )


def _with_operations(broker: BrokerParts, context: RequestContext, topic: Topic) -> Topic:
    """Add the permitted operations, except to a topic that the client may not describe."""
    if topic.error_code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID):
        return topic
    bits = operations(broker, context, ResourceType.TOPIC, topic.name or "")
    return replace(topic, topic_authorized_operations=bits)


def _is_by_id(topic: MetadataRequest.MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != ZERO_UUID


def _failed_response(request: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    """Fail all topics: an id in a version without ids, or a topic without id and name."""
    return MetadataResponse(
        topics=[
            Topic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


async def _requested_topics(
    broker: BrokerParts, context: RequestContext, request: MetadataRequest
) -> list[Topic]:
    """Each requested topic once. If any has an id, names are ignored."""
    requested = request.topics or ()
    ids = dict.fromkeys(topic.topic_id for topic in requested if topic.topic_id != ZERO_UUID)
    if ids:
        return await _by_ids(broker, context, ids)
    names = dict.fromkeys(topic.name for topic in requested if topic.name is not None)
    allowed = _describable_topics(broker, context, names)
    known = [name for name in names if name in allowed and name in broker.metadata.topics]
    missing = [name for name in names if name in allowed and name not in broker.metadata.topics]
    topics = await _known_topics(broker, context, known)
    creates = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
    forbidden = _uncreatable(broker, context, missing) if creates else []
    creatable = [name for name in missing if name not in forbidden]
    errors = await _create(broker, creatable, allowed=creates)
    errors |= dict.fromkeys(forbidden, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topics += [
        Topic(error_code=error, name=name, is_internal=is_internal(name))
        for name, error in errors.items()
    ]
    return topics + [
        Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
        for name in names
        if name not in allowed
    ]


def _uncreatable(broker: BrokerParts, context: RequestContext, missing: list[str]) -> list[str]:
    """The missing topics that the client may not create."""
    if not missing or may_cluster(broker, context, Operation.CREATE, quiet=True):
        return []
    allowed = allowed_names(broker, context, Operation.CREATE, ResourceType.TOPIC, missing)
    return [name for name in missing if name not in allowed]


async def _create(
    broker: BrokerParts, missing: list[str], *, allowed: bool
) -> dict[str, ErrorCode]:
    errors = {
        name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid(name)
        else ErrorCode.INVALID_TOPIC_EXCEPTION
        for name in missing
    }
    creatable = [name for name in missing if is_valid(name)]
    if creatable and allowed:
        errors.update(await broker.controller.auto_create(creatable))
    return errors


async def _by_ids(broker: BrokerParts, context: RequestContext, ids: Iterable[UUID]) -> list[Topic]:
    """Topics by id; the name of a topic that the client may not describe stays hidden."""
    cache = broker.metadata
    names = {
        topic_id: name
        for topic_id in ids
        if (name := cache.topic_names.get(topic_id)) in cache.topics
    }
    allowed = _describable_topics(broker, context, [name for name in names.values() if name])
    unknown, known, forbidden = [], list[str](), []
    for topic_id in ids:
        name = names.get(topic_id)
        if name is None:
            unknown.append(
                Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            )
        elif name in allowed:
            known.append(name)
        else:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            forbidden.append(Topic(error_code=error, name=None, topic_id=topic_id))
    return [*unknown, *await _known_topics(broker, context, known), *forbidden]


async def _known_topics(
    broker: BrokerParts, context: RequestContext, names: Iterable[str]
) -> list[Topic]:
    """Known topics, from one snapshot of the metadata."""
    cache = broker.metadata
    snapshot = [
        (name, cache.topic_ids.get(name, ZERO_UUID), dict(cache.topics[name])) for name in names
    ]
    return [
        Topic(
            name=name,
            topic_id=topic_id,
            is_internal=is_internal(name),
            partitions=[
                _partition(cache, context, index, states[index])
                async for index in yield_items(sorted(states))
            ],
        )
        async for name, topic_id, states in yield_items(snapshot, 20)
    ]


def _partition(
    cache: MetadataCache, context: RequestContext, index: int, state: PartitionState
) -> MetadataResponse.MetadataResponsePartition:
    """A partition. Version 0 lists reachable replicas only, with an error if some are missing."""
    replicas, isr = state.replicas, state.isr
    if context.version == 0:
        replicas = _reachable(cache, context.listener, replicas)
        isr = _reachable(cache, context.listener, isr)
    error, leader = ErrorCode.NONE, state.leader
    if cache.endpoint(state.leader, context.listener) is None:
        alive = state.leader in cache.brokers and context.version >= 6
        error = ErrorCode.LISTENER_NOT_FOUND if alive else ErrorCode.LEADER_NOT_AVAILABLE
        leader = -1
    elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponse.MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=state.offline_replicas,
    )


def _reachable(cache: MetadataCache, listener: str, ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(broker_id for broker_id in ids if cache.endpoint(broker_id, listener) is not None)


@handler(ApiKey.DESCRIBE_CLUSTER, 0, 1)
async def describe_cluster(
    broker: BrokerParts, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Cluster id, controller, brokers. There are no controller endpoints with ZooKeeper."""
    if request.endpoint_type != BROKER_ENDPOINTS:
        is_controller = request.endpoint_type == CONTROLLER_ENDPOINTS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if is_controller
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type} asked of a broker",
        )
    controller_id = broker.metadata.controller_id
    answer = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=-1 if controller_id is None else controller_id,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=live_endpoint.id,
                host=live_endpoint.host,
                port=live_endpoint.port,
                rack=broker.metadata.brokers[live_endpoint.id].rack,
            )
            for live_endpoint in broker.metadata.live_endpoints(context.listener)
        ],
    )
    if request.include_cluster_authorized_operations:
        return replace(answer, cluster_authorized_operations=cluster_operations(broker, context))
    return answer
