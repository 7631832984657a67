"""APIs of KRaft mode that Kafka advertises with ZooKeeper, too, and answers with errors."""

from __future__ import annotations

from urteil.broker.api.authorization import may_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.error_responses import ERROR_MESSAGES
from urteil.broker.api.registry import CloseConnection, RequestContext, handler
from urteil.broker.controller import feature_updates
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


@handler(ApiKey.UPDATE_FEATURES, 0, 1)
async def update_features(
    broker: BrokerParts, context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    if not may_cluster(broker, context, Operation.ALTER):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return UpdateFeaturesResponse(error_code=error, error_message=ERROR_MESSAGES[error])
    return await feature_updates.update_features(broker.controller, request, context.version)


@handler(ApiKey.ENVELOPE, 0, 0)
async def envelope(
    broker: BrokerParts, context: RequestContext, request: EnvelopeRequest
) -> EnvelopeResponse:
    """Close the connection: brokers forward requests in KRaft mode only."""
    raise CloseConnection


@handler(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 0)
async def consumer_group_heartbeat(
    broker: BrokerParts, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


@handler(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 0, group_ids="groups")
async def consumer_group_describe(
    broker: BrokerParts, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[
            ConsumerGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION
            )
            for group_id in request.group_ids
        ]
    )
