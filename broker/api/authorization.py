"""Authorization of requests. Without an authorizer every operation is allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from urteil.broker.api.registry import RequestContext, RequestError
from urteil.broker.security.acls.acl_model import (
    CLUSTER_NAME,
    SUPPORTED,
    Allowed,
    Operation,
    ResourceType,
)
from urteil.broker.security.authorizer import Requester
from urteil.broker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts


def may(
    broker: BrokerParts,
    context: RequestContext,
    operation: Operation,
    type: ResourceType,
    name: str,
    *,
    quiet: bool = False,
) -> bool:
    """Whether the client may do this. `quiet`: a denial is not logged."""
    authorizer = broker.authorizer
    return authorizer is None or authorizer.authorize(
        _requester(context), operation, type, name, log_denied=not quiet
    )


def may_cluster(
    broker: BrokerParts, context: RequestContext, operation: Operation, *, quiet: bool = False
) -> bool:
    """Whether the client may perform the operation on the cluster."""
    return may(broker, context, operation, ResourceType.CLUSTER, CLUSTER_NAME, quiet=quiet)


def require_cluster(broker: BrokerParts, context: RequestContext, operation: Operation) -> None:
    """Raises RequestError unless the client may perform the operation on the cluster."""
    if not may_cluster(broker, context, operation):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def may_any(
    broker: BrokerParts, context: RequestContext, operation: Operation, type: ResourceType
) -> bool:
    """Whether the client may perform the operation on at least one resource of the type."""
    authorizer = broker.authorizer
    return authorizer is None or authorizer.authorize_any(_requester(context), operation, type)


def allowed_names(
    broker: BrokerParts,
    context: RequestContext,
    operation: Operation,
    type: ResourceType,
    names: Iterable[str],
    *,
    quiet: bool = False,
) -> AbstractSet[str]:
    """The names of the resources on which the client may perform the operation."""
    authorizer = broker.authorizer
    if authorizer is None:
        return set(names)
    requester = _requester(context)
    return {
        name
        for name, count in Counter(list(names)).items()
        if authorizer.authorize(requester, operation, type, name, count=count, log_denied=not quiet)
    }


def operations(broker: BrokerParts, context: RequestContext, type: ResourceType, name: str) -> int:
    """A bit for each operation that the client may perform on the resource (KIP-430)."""
    if broker.authorizer is None:
        return sum(1 << operation for operation in SUPPORTED[type])
    return broker.authorizer.operations(_requester(context), type, name)


def cluster_operations(broker: BrokerParts, context: RequestContext) -> int:
    """The permitted operations on the cluster; 0 without the right to DESCRIBE it."""
    if not may_cluster(broker, context, Operation.DESCRIBE):
        return 0
    return operations(broker, context, ResourceType.CLUSTER, CLUSTER_NAME)


def topic_rights(broker: BrokerParts, context: RequestContext) -> Allowed:
    """The client's rights on topics, as a function for the controller."""

    def allowed_topics(operation: Operation, topics: Collection[str]) -> AbstractSet[str]:
        if operation is Operation.CREATE and may_cluster(broker, context, operation, quiet=True):
            return set(topics)
        quiet = operation is Operation.DESCRIBE_CONFIGS
        return allowed_names(broker, context, operation, ResourceType.TOPIC, topics, quiet=quiet)

    return allowed_topics


def _requester(context: RequestContext) -> Requester:
    return Requester(context.principal, context.host, context.header.api_key)
