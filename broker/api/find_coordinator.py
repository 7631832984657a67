"""FindCoordinator: the broker that coordinates a group or a transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from urteil.broker.api.authorization import may, may_cluster
from urteil.broker.api.error_responses import ERROR_MESSAGES
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.groups.coordinator import OFFSETS_TOPIC
from urteil.broker.net.channels import Endpoint
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.transactions.coordinator import TRANSACTIONS_TOPIC
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

GROUP, TRANSACTION, SHARE_GROUP = 0, 1, 2
MANY_FROM = 4
SHARE_GROUPS_FROM = 6
NOWHERE = Endpoint(-1, "", -1)


@handler(ApiKey.FIND_COORDINATOR, 0, 6)
async def find_coordinator(
    broker: BrokerParts, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """One key before version 4, many from then on. A missing topic is created once for all keys."""
    many = context.version >= MANY_FROM
    keys = request.coordinator_keys if many else [request.key]
    missing: set[str] = set()
    coordinators = [
        _find(broker, context, request.key_type, key, missing) async for key in yield_items(keys)
    ]
    if missing:
        await broker.controller.auto_create(list(missing))
    if many:
        return FindCoordinatorResponse(coordinators=coordinators)
    (only,) = coordinators
    error = ErrorCode(only.error_code)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=ERROR_MESSAGES.get(error, error.name),
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(
    broker: BrokerParts, context: RequestContext, key_type: int, key: str, missing: set[str]
) -> FindCoordinatorResponse.Coordinator:
    """The coordinator of a key. A coordinator's topic that does not exist is added to `missing`."""
    error = _authorization_error(broker, context, key_type, key)
    if error is not ErrorCode.NONE:
        return _answer(key, error)
    if key_type == SHARE_GROUP and context.version >= SHARE_GROUPS_FROM:
        return _answer(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)  # as if share groups were disabled
    if key_type == SHARE_GROUP:
        return _answer(key, ErrorCode.INVALID_REQUEST)
    if key_type == GROUP:
        topic, partition = OFFSETS_TOPIC, broker.groups.partition_for(key)
    elif key_type == TRANSACTION:
        topic, partition = TRANSACTIONS_TOPIC, broker.transactions.partition_for(key)
    else:
        return _answer(key, ErrorCode.INVALID_REQUEST, message=f"Unknown key type {key_type}")
    if topic not in broker.metadata.topics:
        missing.add(topic)
        return _answer(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    state = broker.metadata.partition(topic, partition)
    leader = -1 if state is None else state.leader
    endpoint = broker.metadata.endpoint(leader, context.listener)
    if endpoint is None:
        return _answer(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _answer(key, ErrorCode.NONE, endpoint=endpoint)


def _authorization_error(
    broker: BrokerParts, context: RequestContext, key_type: int, key: str
) -> ErrorCode:
    if key_type == GROUP:
        allowed = may(broker, context, Operation.DESCRIBE, ResourceType.GROUP, key)
        return ErrorCode.NONE if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    if key_type == TRANSACTION:
        allowed = may(broker, context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
        return ErrorCode.NONE if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if key_type == SHARE_GROUP and context.version >= SHARE_GROUPS_FROM:
        allowed = may_cluster(broker, context, Operation.CLUSTER_ACTION)
        return ErrorCode.NONE if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _answer(
    key: str, error: ErrorCode, *, endpoint: Endpoint = NOWHERE, message: str = ""
) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key,
        node_id=endpoint.id,
        host=endpoint.host,
        port=endpoint.port,
        error_code=error,
        error_message=message,
    )
