"""DescribeUserScramCredentials, by any broker, and AlterUserScramCredentials, by the controller."""

from __future__ import annotations

from urteil.broker.api.authorization import may_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.error_responses import not_authorized
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.security.sasl.scram_alterations import Described, Outcome, Upsertion
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

NOT_ALLOWED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@handler(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0)
async def describe_user_scram_credentials(
    broker: BrokerParts, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    users = None
    if request.users is not None:
        users = [user.name async for user in yield_items(request.users)]
    if not may_cluster(broker, context, Operation.DESCRIBE):
        error, why = NOT_ALLOWED, not_authorized(NOT_ALLOWED)
        refused = _user_result(Described("", {}, error, why))
        return DescribeUserScramCredentialsResponse(
            error_code=error, error_message=why, results=[refused] * len(users or ())
        )
    descriptions = await broker.scram_admin.describe(users)
    results = [_user_result(description) async for description in yield_items(descriptions)]
    return DescribeUserScramCredentialsResponse(results=results)


def _user_result(
    description: Described,
) -> DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(
        user=description.user,
        error_code=description.error,
        error_message=description.message,
        credential_infos=[
            DescribeUserScramCredentialsResponse.CredentialInfo(
                mechanism=mechanism, iterations=known.iterations
            )
            for mechanism, known in description.credentials.items()
        ],
    )


@handler(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0)
async def alter_user_scram_credentials(
    broker: BrokerParts, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    changes = [
        Upsertion(deletion.name, deletion.mechanism)
        async for deletion in yield_items(request.deletions)
    ]
    changes += [
        Upsertion(
            upsertion.name,
            upsertion.mechanism,
            upsertion.iterations,
            bytes(upsertion.salt),
            bytes(upsertion.salted_password),
        )
        async for upsertion in yield_items(request.upsertions)
    ]
    users = dict.fromkeys(change.user for change in changes)
    if not broker.controller.is_active:
        why = "This is not the correct controller for this cluster."
        error = ErrorCode.NOT_CONTROLLER
        outcomes = [Outcome(user, error, why) async for user in yield_items(users)]
    elif not may_cluster(broker, context, Operation.ALTER):
        why = not_authorized(NOT_ALLOWED)
        outcomes = [Outcome(user, NOT_ALLOWED, why) async for user in yield_items(users)]
    else:
        outcomes = await broker.scram_admin.alter(changes)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                user=outcome.user, error_code=outcome.error, error_message=outcome.message
            )
            async for outcome in yield_items(outcomes)
        ]
    )
