"""DescribeAcls: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_ACLS, "0-3", flexible="2+")
class DescribeAclsRequest(Message):
    """A filter; null matches any name, principal or host."""

    resource_type_filter: int = field("int8", "0+")
    resource_name_filter: str | None = field("string", "0+", nullable="0+")
    pattern_type_filter: int = field("int8", "1+", default=3)
    principal_filter: str | None = field("string", "0+", nullable="0+")
    host_filter: str | None = field("string", "0+", nullable="0+")
    operation: int = field("int8", "0+")
    permission_type: int = field("int8", "0+")


@response(ApiKey.DESCRIBE_ACLS, "0-3", flexible="2+")
class DescribeAclsResponse(Message):
    """The ACLs that match, by resource."""

    @struct
    class AclDescription(Struct):
        principal: str = field("string", "0+")
        host: str = field("string", "0+")
        operation: int = field("int8", "0+")
        permission_type: int = field("int8", "0+")

    @struct
    class DescribeAclsResource(Struct):
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        pattern_type: int = field("int8", "1+", default=3)
        acls: Sequence[DescribeAclsResponse.AclDescription] = field("[]AclDescription", "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    resources: Sequence[DescribeAclsResponse.DescribeAclsResource] = field(
        "[]DescribeAclsResource", "0+"
    )
