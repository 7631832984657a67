"""CreatePartitions: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.CREATE_PARTITIONS, "0-3", flexible="2+")
class CreatePartitionsRequest(Message):
    """New partition counts of topics."""

    @struct
    class CreatePartitionsAssignment(Struct):
        broker_ids: Sequence[int] = field("[]int32", "0+")

    @struct
    class CreatePartitionsTopic(Struct):
        name: str = field("string", "0+")
        count: int = field("int32", "0+")
        assignments: Sequence[CreatePartitionsRequest.CreatePartitionsAssignment] | None = field(
            "[]CreatePartitionsAssignment", "0+", nullable="0+"
        )

    topics: Sequence[CreatePartitionsRequest.CreatePartitionsTopic] = field(
        "[]CreatePartitionsTopic", "0+"
    )
    timeout_ms: int = field("int32", "0+")
    validate_only: bool = field("bool", "0+")


@response(ApiKey.CREATE_PARTITIONS, "0-3", flexible="2+")
class CreatePartitionsResponse(Message):
    """One error a topic."""

    @struct
    class CreatePartitionsTopicResult(Struct):
        name: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+", default=None)

    throttle_time_ms: int = field("int32", "0+")
    results: Sequence[CreatePartitionsResponse.CreatePartitionsTopicResult] = field(
        "[]CreatePartitionsTopicResult", "0+"
    )
