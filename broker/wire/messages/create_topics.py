"""CreateTopics: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.CREATE_TOPICS, "0-7", flexible="5+")
class CreateTopicsRequest(Message):
    """Topics with counts or assignments and configs."""

    @struct
    class CreatableReplicaAssignment(Struct):
        partition_index: int = field("int32", "0+")
        broker_ids: Sequence[int] = field("[]int32", "0+")

    @struct
    class CreatableTopicConfig(Struct):
        name: str = field("string", "0+")
        value: str | None = field("string", "0+", nullable="0+")

    @struct
    class CreatableTopic(Struct):
        name: str = field("string", "0+")
        num_partitions: int = field("int32", "0+")
        replication_factor: int = field("int16", "0+")
        assignments: Sequence[CreateTopicsRequest.CreatableReplicaAssignment] = field(
            "[]CreatableReplicaAssignment", "0+"
        )
        configs: Sequence[CreateTopicsRequest.CreatableTopicConfig] = field(
            "[]CreatableTopicConfig", "0+"
        )

    topics: Sequence[CreateTopicsRequest.CreatableTopic] = field("[]CreatableTopic", "0+")
    timeout_ms: int = field("int32", "0+", default=60000)
    validate_only: bool = field("bool", "1+")


@response(ApiKey.CREATE_TOPICS, "0-7", flexible="5+")
class CreateTopicsResponse(Message):
    """One error a topic."""

    @struct
    class CreatableTopicConfigs(Struct):
        name: str = field("string", "5+")
        value: str | None = field("string", "5+", nullable="5+")
        read_only: bool = field("bool", "5+")
        config_source: int = field("int8", "5+", default=-1)
        is_sensitive: bool = field("bool", "5+")

    @struct
    class CreatableTopicResult(Struct):
        name: str = field("string", "0+")
        topic_id: UUID = field("uuid", "7+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "1+", nullable="0+")
        topic_config_error_code: int = field("int16", "5+", tag=0, tagged="5+")
        num_partitions: int = field("int32", "5+", default=-1)
        replication_factor: int = field("int16", "5+", default=-1)
        configs: Sequence[CreateTopicsResponse.CreatableTopicConfigs] | None = field(
            "[]CreatableTopicConfigs", "5+", nullable="5+"
        )

    throttle_time_ms: int = field("int32", "2+")
    topics: Sequence[CreateTopicsResponse.CreatableTopicResult] = field(
        "[]CreatableTopicResult", "0+"
    )
