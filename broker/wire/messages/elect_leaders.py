"""ElectLeaders: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ELECT_LEADERS, "0-2", flexible="2+")
class ElectLeadersRequest(Message):
    """Partitions whose leader shall be elected anew."""

    @struct
    class TopicPartitions(Struct):
        topic: str = field("string", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    election_type: int = field("int8", "1+")
    topic_partitions: Sequence[ElectLeadersRequest.TopicPartitions] | None = field(
        "[]TopicPartitions", "0+", nullable="0+"
    )
    timeout_ms: int = field("int32", "0+", default=60000)


@response(ApiKey.ELECT_LEADERS, "0-2", flexible="2+")
class ElectLeadersResponse(Message):
    """One error a partition."""

    @struct
    class PartitionResult(Struct):
        partition_id: int = field("int32", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    @struct
    class ReplicaElectionResult(Struct):
        topic: str = field("string", "0+")
        partition_result: Sequence[ElectLeadersResponse.PartitionResult] = field(
            "[]PartitionResult", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "1+")
    replica_election_results: Sequence[ElectLeadersResponse.ReplicaElectionResult] = field(
        "[]ReplicaElectionResult", "0+"
    )
