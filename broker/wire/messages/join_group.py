"""JoinGroup: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.JOIN_GROUP, "0-9", flexible="6+")
class JoinGroupRequest(Message):
    """A member enters a group or a new generation."""

    @struct
    class JoinGroupRequestProtocol(Struct):
        name: str = field("string", "0+")
        metadata: bytes = field("bytes", "0+")

    group_id: str = field("string", "0+")
    session_timeout_ms: int = field("int32", "0+")
    rebalance_timeout_ms: int = field("int32", "1+", default=-1)
    member_id: str = field("string", "0+")
    group_instance_id: str | None = field("string", "5+", nullable="5+", default=None)
    protocol_type: str = field("string", "0+")
    protocols: Sequence[JoinGroupRequest.JoinGroupRequestProtocol] = field(
        "[]JoinGroupRequestProtocol", "0+"
    )
    reason: str | None = field("string", "8+", nullable="8+", default=None)


@response(ApiKey.JOIN_GROUP, "0-9", flexible="6+")
class JoinGroupResponse(Message):
    """The generation; members for the leader alone."""

    @struct
    class JoinGroupResponseMember(Struct):
        member_id: str = field("string", "0+")
        group_instance_id: str | None = field("string", "5+", nullable="5+", default=None)
        metadata: bytes = field("bytes", "0+")

    throttle_time_ms: int = field("int32", "2+")
    error_code: int = field("int16", "0+")
    generation_id: int = field("int32", "0+", default=-1)
    protocol_type: str | None = field("string", "7+", nullable="7+", default=None)
    protocol_name: str | None = field("string", "0+", nullable="7+")
    leader: str = field("string", "0+")
    skip_assignment: bool = field("bool", "9+")
    member_id: str = field("string", "0+")
    members: Sequence[JoinGroupResponse.JoinGroupResponseMember] = field(
        "[]JoinGroupResponseMember", "0+"
    )
