"""SyncGroup: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.SYNC_GROUP, "0-5", flexible="4+")
class SyncGroupRequest(Message):
    """The leader brings assignments, members ask for theirs."""

    @struct
    class SyncGroupRequestAssignment(Struct):
        member_id: str = field("string", "0+")
        assignment: bytes = field("bytes", "0+")

    group_id: str = field("string", "0+")
    generation_id: int = field("int32", "0+")
    member_id: str = field("string", "0+")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
    protocol_type: str | None = field("string", "5+", nullable="5+", default=None)
    protocol_name: str | None = field("string", "5+", nullable="5+", default=None)
    assignments: Sequence[SyncGroupRequest.SyncGroupRequestAssignment] = field(
        "[]SyncGroupRequestAssignment", "0+"
    )


@response(ApiKey.SYNC_GROUP, "0-5", flexible="4+")
class SyncGroupResponse(Message):
    """The assignment of the member."""

    throttle_time_ms: int = field("int32", "1+")
    error_code: int = field("int16", "0+")
    protocol_type: str | None = field("string", "5+", nullable="5+", default=None)
    protocol_name: str | None = field("string", "5+", nullable="5+", default=None)
    assignment: bytes = field("bytes", "0+")
