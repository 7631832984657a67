"""LeaveGroup: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.LEAVE_GROUP, "0-5", flexible="4+")
class LeaveGroupRequest(Message):
    """Members leave the group; before version 3 only `member_id`."""

    @struct
    class MemberIdentity(Struct):
        member_id: str = field("string", "3+")
        group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
        reason: str | None = field("string", "5+", nullable="5+", default=None)

    group_id: str = field("string", "0+")
    member_id: str = field("string", "0-2")
    members: Sequence[LeaveGroupRequest.MemberIdentity] = field("[]MemberIdentity", "3+")


@response(ApiKey.LEAVE_GROUP, "0-5", flexible="4+")
class LeaveGroupResponse(Message):
    """From version 3 on an error for each member; before, `error_code` is that of the only one."""

    @struct
    class MemberResponse(Struct):
        member_id: str = field("string", "3+")
        group_instance_id: str | None = field("string", "3+", nullable="3+")
        error_code: int = field("int16", "3+")

    throttle_time_ms: int = field("int32", "1+")
    error_code: int = field("int16", "0+")
    members: Sequence[LeaveGroupResponse.MemberResponse] = field("[]MemberResponse", "3+")
