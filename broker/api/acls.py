"""DescribeAcls, CreateAcls and DeleteAcls; any broker serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from urteil.broker.api.authorization import may_cluster
from urteil.broker.api.error_responses import not_authorized
from urteil.broker.api.registry import CloseConnection, RequestContext, handler
from urteil.broker.security.acls.acl_model import (
    CLUSTER_NAME,
    AclFilter,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from urteil.broker.security.acls.cluster_acls import ClusterAcls, Contended, Removed
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

Result = CreateAclsResponse.AclCreationResult
Wanted = DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter
OFF = "No Authorizer is configured."


@handler(ApiKey.DESCRIBE_ACLS, 0, 3)
async def describe_acls(
    broker: BrokerParts, context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """The ACLs that match the filter. A filter with an UNKNOWN value closes the connection."""
    acl_filter = _filter(request)
    if not may_cluster(broker, context, Operation.DESCRIBE):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeAclsResponse(error_code=error, error_message=not_authorized(error))
    if broker.cluster_acls is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
        )
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResponse.DescribeAclsResource(
                resource_type=pattern.type,
                resource_name=pattern.name,
                pattern_type=pattern.kind,
                acls=[
                    DescribeAclsResponse.AclDescription(
                        principal=entry.principal,
                        host=entry.host,
                        operation=entry.operation,
                        permission_type=entry.permission,
                    )
                    for entry in entries
                ],
            )
            for pattern, entries in broker.cluster_acls.table.picked_entries(acl_filter)
        ],
    )


@handler(ApiKey.CREATE_ACLS, 0, 3, creations="results")
async def create_acls(
    broker: BrokerParts, context: RequestContext, request: CreateAclsRequest
) -> CreateAclsResponse:
    """One result for each ACL; the ACLs of one resource are written together."""
    for creation in request.creations:
        if 0 in (
            creation.resource_type,
            creation.resource_pattern_type,
            creation.operation,
            creation.permission_type,
        ):
            raise CloseConnection
    if not may_cluster(broker, context, Operation.ALTER):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return _same_result(request, Result(error_code=error, error_message=not_authorized(error)))
    cluster_acls = broker.cluster_acls
    if cluster_acls is None:
        return _same_result(
            request, Result(error_code=ErrorCode.SECURITY_DISABLED, error_message=OFF)
        )
    if any(_is_for_filters(creation) for creation in request.creations):
        return _same_result(
            request, Result(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=None)
        )
    bindings = [(_pattern(creation), _entry(creation)) for creation in request.creations]
    results = [_check(*binding) for binding in bindings]
    entries_by_pattern: dict[Pattern, list[Entry]] = {}
    for (pattern, entry), wrong in zip(bindings, results, strict=True):
        if wrong is None:
            entries_by_pattern.setdefault(pattern, []).append(entry)
    written = {
        pattern: await _add(broker, cluster_acls, pattern, entries)
        for pattern, entries in entries_by_pattern.items()
    }
    return CreateAclsResponse(
        results=[
            written[pattern] if wrong is None else wrong
            for (pattern, _), wrong in zip(bindings, results, strict=True)
        ]
    )


async def _add(
    broker: BrokerParts, cluster_acls: ClusterAcls, pattern: Pattern, entries: Sequence[Entry]
) -> Result:
    """Add ACLs, or none if a principal has no type; REQUEST_TIMED_OUT if ZooKeeper does not answer
    within `request.timeout.ms`."""
    if any(":" not in entry.principal for entry in entries):
        return Result(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=None)
    try:
        async with asyncio.timeout(broker.config.request_timeout_ms / 1000):
            await cluster_acls.add(pattern, entries)
    except TimeoutError:
        return Result(error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=None)
    except (Contended, ValueError) as error:
        return Result(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=str(error))
    return Result(error_message="")


def _same_result(request: CreateAclsRequest, result: Result) -> CreateAclsResponse:
    return CreateAclsResponse(results=[result for _ in request.creations])


def _is_for_filters(creation: CreateAclsRequest.AclCreation) -> bool:
    """Whether a field is ANY or MATCH, which only filters may have."""
    return (
        creation.resource_type == ResourceType.ANY
        or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.operation == Operation.ANY
        or creation.permission_type == Permission.ANY
    )


def _check(pattern: Pattern, entry: Entry) -> Result | None:
    """The error of an invalid ACL; None for a valid one."""
    unknown = 0 in (pattern.type, pattern.kind, entry.operation, entry.permission)
    if pattern.type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        why = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not pattern.name:
        why = "Invalid empty resource name"
    elif unknown or "/" in pattern.name:
        why = "Failed to create ACL"
    else:
        return None
    return Result(error_code=ErrorCode.INVALID_REQUEST, error_message=why)


def _pattern(creation: CreateAclsRequest.AclCreation) -> Pattern:
    kind = PatternType(creation.resource_pattern_type)
    return Pattern(ResourceType(creation.resource_type), creation.resource_name, kind)


def _entry(creation: CreateAclsRequest.AclCreation) -> Entry:
    return Entry(
        creation.principal,
        creation.host,
        Operation(creation.operation),
        Permission(creation.permission_type),
    )


@handler(ApiKey.DELETE_ACLS, 0, 3, filters="filter_results")
async def delete_acls(
    broker: BrokerParts, context: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse:
    """The ACLs that each filter removed."""
    filters = [_filter(acl_filter) for acl_filter in request.filters]
    error, message = ErrorCode.NONE, OFF
    if not may_cluster(broker, context, Operation.ALTER):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        message = not_authorized(error)
    elif broker.cluster_acls is None:
        error = ErrorCode.SECURITY_DISABLED
    else:
        try:
            async with asyncio.timeout(broker.config.request_timeout_ms / 1000):
                removed = await broker.cluster_acls.remove(filters)
            return DeleteAclsResponse(
                filter_results=[_filter_result(bindings) for bindings in removed]
            )
        except TimeoutError:
            error, message = ErrorCode.REQUEST_TIMED_OUT, "ZooKeeper cannot be reached"
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.DeleteAclsFilterResult(error_code=error, error_message=message)
            for _ in filters
        ]
    )


def _filter_result(removed: Sequence[Removed]) -> DeleteAclsResponse.DeleteAclsFilterResult:
    return DeleteAclsResponse.DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsResponse.DeleteAclsMatchingAcl(
                error_code=ErrorCode.UNKNOWN_SERVER_ERROR if binding.failure else ErrorCode.NONE,
                error_message=str(binding.failure) if binding.failure else None,
                resource_type=binding.pattern.type,
                resource_name=binding.pattern.name,
                pattern_type=binding.pattern.kind,
                principal=binding.entry.principal,
                host=binding.entry.host,
                operation=binding.entry.operation,
                permission_type=binding.entry.permission,
            )
            for binding in removed
        ],
    )


def _filter(asked: Wanted) -> AclFilter:
    """The filter of a request. Raises CloseConnection if a field is UNKNOWN."""
    numbers = (
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )
    if 0 in numbers:
        raise CloseConnection
    return AclFilter(
        type=ResourceType(asked.resource_type_filter),
        name=asked.resource_name_filter,
        kind=PatternType(asked.pattern_type_filter),
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=Operation(asked.operation),
        permission=Permission(asked.permission_type),
    )
