"""Heartbeat: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.HEARTBEAT, "0-4", flexible="4+")
class HeartbeatRequest(Message):
    """A member says that it lives."""

    group_id: str = field("string", "0+")
    generation_id: int = field("int32", "0+")
    member_id: str = field("string", "0+")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)


@response(ApiKey.HEARTBEAT, "0-4", flexible="4+")
class HeartbeatResponse(Message):
    """An error alone."""

    throttle_time_ms: int = field("int32", "1+")
    error_code: int = field("int16", "0+")
