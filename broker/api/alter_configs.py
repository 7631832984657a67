"""AlterConfigs and IncrementalAlterConfigs; each broker serves its own settings."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.config_authorization import config_denial
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.config.incremental_changes import Change
from urteil.broker.config.incremental_changes import Operation as Alter
from urteil.broker.controller.config_administration import Alteration, Answer
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1)
async def incremental_alter_configs(
    broker: BrokerParts, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change single settings; the others stay."""
    asked = [
        Alteration(
            kind=resource.resource_type,
            name=resource.resource_name,
            changes=[
                Change(config.name, config.config_operation, config.value)
                async for config in yield_items(resource.configs)
            ],
        )
        async for resource in yield_items(request.resources)
    ]
    answers = await _alter(broker, context, asked, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=answer.error,
                error_message=answer.message,
                resource_type=resource.kind,
                resource_name=resource.name,
            )
            async for resource, answer in yield_items(zip(asked, answers, strict=True))
        ]
    )


@handler(ApiKey.ALTER_CONFIGS, 0, 2)
async def alter_configs(
    broker: BrokerParts, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace all settings of a resource."""
    asked = [
        Alteration(
            kind=resource.resource_type,
            name=resource.resource_name,
            changes=[
                Change(config.name, Alter.SET, config.value)
                async for config in yield_items(resource.configs)
            ],
            whole=True,
        )
        async for resource in yield_items(request.resources)
    ]
    answers = await _alter(broker, context, asked, validate_only=request.validate_only)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=answer.error,
                error_message=answer.message,
                resource_type=resource.kind,
                resource_name=resource.name,
            )
            async for resource, answer in yield_items(zip(asked, answers, strict=True))
        ]
    )


async def _alter(
    broker: BrokerParts,
    context: RequestContext,
    asked: Sequence[Alteration],
    *,
    validate_only: bool,
) -> list[Answer]:
    def denial(kind: int, name: str) -> ErrorCode:
        return config_denial(broker, context, Operation.ALTER_CONFIGS, kind, name)

    return await broker.config_admin.alter(asked, denial, validate_only=validate_only)
