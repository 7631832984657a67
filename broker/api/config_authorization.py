"""Authorization to describe and alter the settings of a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from urteil.broker.api.authorization import may, may_cluster
from urteil.broker.api.registry import RequestContext
from urteil.broker.controller.config_administration import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    TOPIC,
)
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts


def config_denial(
    broker: BrokerParts, context: RequestContext, operation: Operation, kind: int, name: str
) -> ErrorCode:
    """The error if the client may not access the settings of a resource; NONE if it may."""
    if kind == TOPIC and not may(broker, context, operation, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    of_the_cluster = kind in (BROKER, BROKER_LOGGER, CLIENT_METRICS)
    if of_the_cluster and not may_cluster(broker, context, operation):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.NONE
