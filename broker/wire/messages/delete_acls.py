"""DeleteAcls: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DELETE_ACLS, "0-3", flexible="2+")
class DeleteAclsRequest(Message):
    """Filters of what to remove; null matches any name, principal or host."""

    @struct
    class DeleteAclsFilter(Struct):
        resource_type_filter: int = field("int8", "0+")
        resource_name_filter: str | None = field("string", "0+", nullable="0+")
        pattern_type_filter: int = field("int8", "1+", default=3)
        principal_filter: str | None = field("string", "0+", nullable="0+")
        host_filter: str | None = field("string", "0+", nullable="0+")
        operation: int = field("int8", "0+")
        permission_type: int = field("int8", "0+")

    filters: Sequence[DeleteAclsRequest.DeleteAclsFilter] = field("[]DeleteAclsFilter", "0+")


@response(ApiKey.DELETE_ACLS, "0-3", flexible="2+")
class DeleteAclsResponse(Message):
    """What each filter removed."""

    @struct
    class DeleteAclsMatchingAcl(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        pattern_type: int = field("int8", "1+", default=3)
        principal: str = field("string", "0+")
        host: str = field("string", "0+")
        operation: int = field("int8", "0+")
        permission_type: int = field("int8", "0+")

    @struct
    class DeleteAclsFilterResult(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        matching_acls: Sequence[DeleteAclsResponse.DeleteAclsMatchingAcl] = field(
            "[]DeleteAclsMatchingAcl", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    filter_results: Sequence[DeleteAclsResponse.DeleteAclsFilterResult] = field(
        "[]DeleteAclsFilterResult", "0+"
    )
