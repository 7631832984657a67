"""CreateAcls: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.CREATE_ACLS, "0-3", flexible="2+")
class CreateAclsRequest(Message):
    """ACLs to add."""

    @struct
    class AclCreation(Struct):
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        resource_pattern_type: int = field("int8", "1+", default=3)
        principal: str = field("string", "0+")
        host: str = field("string", "0+")
        operation: int = field("int8", "0+")
        permission_type: int = field("int8", "0+")

    creations: Sequence[CreateAclsRequest.AclCreation] = field("[]AclCreation", "0+")


@response(ApiKey.CREATE_ACLS, "0-3", flexible="2+")
class CreateAclsResponse(Message):
    """One error an ACL, in the request's order."""

    @struct
    class AclCreationResult(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    results: Sequence[CreateAclsResponse.AclCreationResult] = field("[]AclCreationResult", "0+")
