"""Create-, Renew-, Expire- and DescribeDelegationToken; any broker serves them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from urteil.broker.api.authorization import may
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.security.principals import ANONYMOUS, USER, Principal
from urteil.broker.security.tokens.cluster_tokens import ExpiryResult
from urteil.broker.security.tokens.token_table import NO_TIME, Token
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

Described = DescribeDelegationTokenResponse.DescribedDelegationToken
Renewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer
Change = Callable[[Principal, bytes, int], Awaitable[ExpiryResult]]


@handler(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3)
async def create_delegation_token(
    broker: BrokerParts, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Create a token; for another owner, with the right to CREATE_TOKENS for it (KIP-373)."""
    requester = owner = context.principal
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            return _failed_creation(ErrorCode.UNKNOWN_SERVER_ERROR, ANONYMOUS, ANONYMOUS)
        owner = Principal(request.owner_principal_type, request.owner_principal_name)
    renewers = [
        Principal(renewer.principal_type, renewer.principal_name)
        async for renewer in yield_items(request.renewers)
    ]
    error = _token_error(broker, context)
    if error is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
        return _failed_creation(error, owner, requester)
    if owner != requester and not _may_act_for(broker, context, Operation.CREATE_TOKENS, owner):
        return _failed_creation(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, owner, requester)
    if any(renewer.type != USER for renewer in renewers):
        return _failed_creation(ErrorCode.INVALID_PRINCIPAL_TYPE, owner, requester)
    if error:
        return _failed_creation(error, owner, requester)
    token = await broker.tokens.create(owner, requester, tuple(renewers), request.max_lifetime_ms)
    return CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.id,
        hmac=broker.tokens.table.hmac(token.id),
    )


def _failed_creation(
    error: ErrorCode, owner: Principal, requester: Principal
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )


@handler(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2)
async def renew_delegation_token(
    broker: BrokerParts, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    error, ends_ms = await _change_expiration(
        broker, context, broker.tokens.renew, request.hmac, request.renew_period_ms
    )
    return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=ends_ms)


@handler(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2)
async def expire_delegation_token(
    broker: BrokerParts, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    error, ends_ms = await _change_expiration(
        broker, context, broker.tokens.expire, request.hmac, request.expiry_time_period_ms
    )
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=ends_ms)


async def _change_expiration(
    broker: BrokerParts, context: RequestContext, change: Change, hmac: bytes, period_ms: int
) -> ExpiryResult:
    """Change the expiration of a token, if the client may manage tokens."""
    error = _token_error(broker, context)
    if error:
        return error, NO_TIME
    return await change(context.principal, bytes(hmac), period_ms)


@handler(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3)
async def describe_delegation_token(
    broker: BrokerParts, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """The client's own tokens, and those that it may DESCRIBE, or DESCRIBE_TOKENS of the owner."""
    error = _token_error(broker, context)
    if error:
        return DescribeDelegationTokenResponse(error_code=error)
    owners = None
    if request.owners is not None:
        owners = [Principal(owner.principal_type, owner.principal_name) for owner in request.owners]

    def may_describe(token: Token) -> bool:
        return may(
            broker, context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id
        ) or _may_act_for(broker, context, Operation.DESCRIBE_TOKENS, token.owner)

    table = broker.tokens.table
    visible_tokens = table.visible_tokens(context.principal, owners, may_describe)
    return DescribeDelegationTokenResponse(
        tokens=[
            _token_description(visible_token, table.hmac(visible_token.id))
            for visible_token in visible_tokens
        ]
    )


def _token_description(token: Token, hmac: bytes) -> Described:
    return Described(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=hmac,
        renewers=[
            Renewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in token.renewers
        ],
    )


def _token_error(broker: BrokerParts, context: RequestContext) -> ErrorCode:
    """The error if the client is not authenticated, or is authenticated by a token."""
    anonymous = context.protocol == "SSL" and context.principal == ANONYMOUS
    by_token = context.principal.token_authenticated
    if context.protocol == "PLAINTEXT" or anonymous or by_token:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if not broker.tokens.table.is_enabled:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.NONE


def _may_act_for(
    broker: BrokerParts, context: RequestContext, operation: Operation, user: Principal
) -> bool:
    return may(broker, context, operation, ResourceType.USER, str(user))
