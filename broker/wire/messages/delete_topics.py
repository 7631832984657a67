"""DeleteTopics: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DELETE_TOPICS, "0-6", flexible="4+")
class DeleteTopicsRequest(Message):
    """Topics by name or id."""

    @struct
    class DeleteTopicState(Struct):
        name: str | None = field("string", "6+", nullable="6+", default=None)
        topic_id: UUID = field("uuid", "6+")

    topics: Sequence[DeleteTopicsRequest.DeleteTopicState] = field("[]DeleteTopicState", "6+")
    topic_names: Sequence[str] = field("[]string", "0-5")
    timeout_ms: int = field("int32", "0+")


@response(ApiKey.DELETE_TOPICS, "0-6", flexible="4+")
class DeleteTopicsResponse(Message):
    """One error a topic."""

    @struct
    class DeletableTopicResult(Struct):
        name: str | None = field("string", "0+", nullable="6+")
        topic_id: UUID = field("uuid", "6+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "5+", nullable="5+", default=None)

    throttle_time_ms: int = field("int32", "1+")
    responses: Sequence[DeleteTopicsResponse.DeletableTopicResult] = field(
        "[]DeletableTopicResult", "0+"
    )
