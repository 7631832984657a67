"""FindCoordinator: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.FIND_COORDINATOR, "0-6", flexible="3+")
class FindCoordinatorRequest(Message):
    """Where the coordinator of a group or transaction is."""

    key: str = field("string", "0-3")
    key_type: int = field("int8", "1+")
    coordinator_keys: Sequence[str] = field("[]string", "4+")


@response(ApiKey.FIND_COORDINATOR, "0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    """The coordinator, from version 4 one a key."""

    @struct
    class Coordinator(Struct):
        key: str = field("string", "4+")
        node_id: int = field("int32", "4+")
        host: str = field("string", "4+")
        port: int = field("int32", "4+")
        error_code: int = field("int16", "4+")
        error_message: str | None = field("string", "4+", nullable="4+")

    throttle_time_ms: int = field("int32", "1+")
    error_code: int = field("int16", "0-3")
    error_message: str | None = field("string", "1-3", nullable="1-3")
    node_id: int = field("int32", "0-3")
    host: str = field("string", "0-3")
    port: int = field("int32", "0-3")
    coordinators: Sequence[FindCoordinatorResponse.Coordinator] = field("[]Coordinator", "4+")
