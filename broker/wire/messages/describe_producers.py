"""DescribeProducers: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_PRODUCERS, "0", flexible="0+")
class DescribeProducersRequest(Message):
    """Partitions whose producers are requested."""

    @struct
    class TopicRequest(Struct):
        name: str = field("string", "0+")
        partition_indexes: Sequence[int] = field("[]int32", "0+")

    topics: Sequence[DescribeProducersRequest.TopicRequest] = field("[]TopicRequest", "0+")


@response(ApiKey.DESCRIBE_PRODUCERS, "0", flexible="0+")
class DescribeProducersResponse(Message):
    """What each partition's leader remembers of its producers."""

    @struct
    class ProducerState(Struct):
        producer_id: int = field("int64", "0+")
        producer_epoch: int = field("int32", "0+")
        last_sequence: int = field("int32", "0+", default=-1)
        last_timestamp: int = field("int64", "0+", default=-1)
        coordinator_epoch: int = field("int32", "0+")
        current_txn_start_offset: int = field("int64", "0+", default=-1)

    @struct
    class PartitionResponse(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+", default=None)
        active_producers: Sequence[DescribeProducersResponse.ProducerState] = field(
            "[]ProducerState", "0+"
        )

    @struct
    class TopicResponse(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[DescribeProducersResponse.PartitionResponse] = field(
            "[]PartitionResponse", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    topics: Sequence[DescribeProducersResponse.TopicResponse] = field("[]TopicResponse", "0+")
