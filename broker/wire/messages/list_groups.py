"""ListGroups: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.LIST_GROUPS, "0-5", flexible="3+")
class ListGroupsRequest(Message):
    """Groups by state and type."""

    states_filter: Sequence[str] = field("[]string", "4+")
    types_filter: Sequence[str] = field("[]string", "5+")


@response(ApiKey.LIST_GROUPS, "0-5", flexible="3+")
class ListGroupsResponse(Message):
    """Groups this broker coordinates."""

    @struct
    class ListedGroup(Struct):
        group_id: str = field("string", "0+")
        protocol_type: str = field("string", "0+")
        group_state: str = field("string", "4+")
        group_type: str = field("string", "5+")

    throttle_time_ms: int = field("int32", "1+")
    error_code: int = field("int16", "0+")
    groups: Sequence[ListGroupsResponse.ListedGroup] = field("[]ListedGroup", "0+")
