"""Produce: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Records, Struct, field, request, response, struct


@request(ApiKey.PRODUCE, "0-11", flexible="9+")
class ProduceRequest(Message):
    """Append batches to the leaders of partitions."""

    @struct
    class PartitionProduceData(Struct):
        index: int = field("int32", "0+")
        records: Records | None = field("records", "0+", nullable="0+")

    @struct
    class TopicProduceData(Struct):
        name: str = field("string", "0+")
        partition_data: Sequence[ProduceRequest.PartitionProduceData] = field(
            "[]PartitionProduceData", "0+"
        )

    transactional_id: str | None = field("string", "3+", nullable="3+", default=None)
    acks: int = field("int16", "0+")
    timeout_ms: int = field("int32", "0+")
    topic_data: Sequence[ProduceRequest.TopicProduceData] = field("[]TopicProduceData", "0+")


@response(ApiKey.PRODUCE, "0-11", flexible="9+")
class ProduceResponse(Message):
    """Where the batches went, one answer a partition."""

    @struct
    class BatchIndexAndErrorMessage(Struct):
        batch_index: int = field("int32", "8+")
        batch_index_error_message: str | None = field("string", "8+", nullable="8+", default=None)

    @struct
    class LeaderIdAndEpoch(Struct):
        leader_id: int = field("int32", "10+", default=-1)
        leader_epoch: int = field("int32", "10+", default=-1)

    @struct
    class PartitionProduceResponse(Struct):
        index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")
        base_offset: int = field("int64", "0+")
        log_append_time_ms: int = field("int64", "2+", default=-1)
        log_start_offset: int = field("int64", "5+", default=-1)
        record_errors: Sequence[ProduceResponse.BatchIndexAndErrorMessage] = field(
            "[]BatchIndexAndErrorMessage", "8+"
        )
        error_message: str | None = field("string", "8+", nullable="8+", default=None)
        current_leader: ProduceResponse.LeaderIdAndEpoch = field(
            "LeaderIdAndEpoch", "10+", tag=0, tagged="10+"
        )

    @struct
    class TopicProduceResponse(Struct):
        name: str = field("string", "0+")
        partition_responses: Sequence[ProduceResponse.PartitionProduceResponse] = field(
            "[]PartitionProduceResponse", "0+"
        )

    @struct
    class NodeEndpoint(Struct):
        node_id: int = field("int32", "10+")
        host: str = field("string", "10+")
        port: int = field("int32", "10+")
        rack: str | None = field("string", "10+", nullable="10+", default=None)

    responses: Sequence[ProduceResponse.TopicProduceResponse] = field(
        "[]TopicProduceResponse", "0+"
    )
    throttle_time_ms: int = field("int32", "1+")
    node_endpoints: Sequence[ProduceResponse.NodeEndpoint] = field(
        "[]NodeEndpoint", "10+", tag=0, tagged="10+"
    )
