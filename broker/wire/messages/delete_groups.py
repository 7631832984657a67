"""DeleteGroups: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DELETE_GROUPS, "0-2", flexible="2+")
class DeleteGroupsRequest(Message):
    """Groups to delete."""

    groups_names: Sequence[str] = field("[]string", "0+")


@response(ApiKey.DELETE_GROUPS, "0-2", flexible="2+")
class DeleteGroupsResponse(Message):
    """One error a group."""

    @struct
    class DeletableGroupResult(Struct):
        group_id: str = field("string", "0+")
        error_code: int = field("int16", "0+")

    throttle_time_ms: int = field("int32", "0+")
    results: Sequence[DeleteGroupsResponse.DeletableGroupResult] = field(
        "[]DeletableGroupResult", "0+"
    )
