"""DescribeClientQuotas and AlterClientQuotas; any broker serves them."""

from __future__ import annotations

import asyncio

from urteil.broker.api.authorization import may_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.error_responses import ERROR_MESSAGES
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.config.incremental_changes import RejectedChange
from urteil.broker.quotas.alterations import ANY, EXACT, Component
from urteil.broker.quotas.quota_table import Entity
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

Answer = AlterClientQuotasResponse.EntryData


@handler(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1)
async def describe_client_quotas(
    broker: BrokerParts, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    components = [
        Component(component.entity_type, component.match_type, component.match)
        async for component in yield_items(request.components)
    ]
    if not may_cluster(broker, context, Operation.DESCRIBE_CONFIGS):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return _error_response(error, None)
    async for component in yield_items(request.components):
        if not _is_valid(component):
            return _error_response(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    try:
        async with asyncio.timeout(broker.config.request_timeout_ms / 1000):
            quotas_by_entity = await broker.quota_admin.describe(components, strict=request.strict)
    except RejectedChange as refused:
        return _error_response(refused.error, refused.message)
    except TimeoutError:
        return _error_response(ErrorCode.REQUEST_TIMED_OUT, "ZooKeeper cannot be reached")
    return DescribeClientQuotasResponse(
        entries=[
            DescribeClientQuotasResponse.EntryData(
                entity=[
                    DescribeClientQuotasResponse.EntityData(entity_type=type, entity_name=name)
                    for type, name in entity.components
                ],
                values=[
                    DescribeClientQuotasResponse.ValueData(key=quota, value=value)
                    for quota, value in quotas.items()
                ],
            )
            for entity, quotas in quotas_by_entity.items()
        ],
    )


def _is_valid(component_data: DescribeClientQuotasRequest.ComponentData) -> bool:
    return 0 <= component_data.match_type <= ANY and (
        component_data.match_type != EXACT or component_data.match is not None
    )


def _error_response(error: ErrorCode, message: str | None) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)


@handler(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1)
async def alter_client_quotas(
    broker: BrokerParts, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Alter the quotas of each entity, one result for each; an error of one does not affect the
    others."""
    allowed = may_cluster(broker, context, Operation.ALTER_CONFIGS)
    answers = {}
    async for entry in yield_items(request.entries):
        names = {
            component.entity_type: component.entity_name
            async for component in yield_items(entry.entity)
        }
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        message: str | None = ERROR_MESSAGES[error]
        if allowed:
            entity = Entity(tuple(names.items()))
            error, message = await _alter(
                broker, entity, entry, validate_only=request.validate_only
            )
        answers[frozenset(names.items())] = Answer(
            error_code=error,
            error_message=message,
            entity=[
                AlterClientQuotasResponse.EntityData(entity_type=type, entity_name=name)
                async for type, name in yield_items(names.items())
            ],
        )
    return AlterClientQuotasResponse(entries=list(answers.values()))


async def _alter(
    broker: BrokerParts,
    entity: Entity,
    entry: AlterClientQuotasRequest.EntryData,
    *,
    validate_only: bool,
) -> tuple[ErrorCode, str | None]:
    changes = {op.key: None if op.remove else op.value async for op in yield_items(entry.ops)}
    try:
        async with asyncio.timeout(broker.config.request_timeout_ms / 1000):
            await broker.quota_admin.alter(entity, changes, validate_only=validate_only)
    except RejectedChange as refused:
        return refused.error, refused.message
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT, "ZooKeeper cannot be reached"
    return ErrorCode.NONE, None
