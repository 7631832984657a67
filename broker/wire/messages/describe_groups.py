"""DescribeGroups: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_GROUPS, "0-5", flexible="5+")
class DescribeGroupsRequest(Message):
    """Groups to describe."""

    groups: Sequence[str] = field("[]string", "0+")
    include_authorized_operations: bool = field("bool", "3+")


@response(ApiKey.DESCRIBE_GROUPS, "0-5", flexible="5+")
class DescribeGroupsResponse(Message):
    """State and members of each group."""

    @struct
    class DescribedGroupMember(Struct):
        member_id: str = field("string", "0+")
        group_instance_id: str | None = field("string", "4+", nullable="4+", default=None)
        client_id: str = field("string", "0+")
        client_host: str = field("string", "0+")
        member_metadata: bytes = field("bytes", "0+")
        member_assignment: bytes = field("bytes", "0+")

    @struct
    class DescribedGroup(Struct):
        error_code: int = field("int16", "0+")
        group_id: str = field("string", "0+")
        group_state: str = field("string", "0+")
        protocol_type: str = field("string", "0+")
        protocol_data: str = field("string", "0+")
        members: Sequence[DescribeGroupsResponse.DescribedGroupMember] = field(
            "[]DescribedGroupMember", "0+"
        )
        authorized_operations: int = field("int32", "3+", default=-2147483648)

    throttle_time_ms: int = field("int32", "1+")
    groups: Sequence[DescribeGroupsResponse.DescribedGroup] = field("[]DescribedGroup", "0+")
