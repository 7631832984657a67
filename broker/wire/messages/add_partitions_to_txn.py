"""AddPartitionsToTxn: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ADD_PARTITIONS_TO_TXN, "0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message):
    """Partitions that join a transaction; from version 4 on, brokers ask whether they have."""

    @struct
    class AddPartitionsToTxnTopic(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    @struct
    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = field("string", "4+")
        producer_id: int = field("int64", "4+")
        producer_epoch: int = field("int16", "4+")
        verify_only: bool = field("bool", "4+")
        topics: Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = field(
            "[]AddPartitionsToTxnTopic", "4+"
        )

    transactions: Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = field(
        "[]AddPartitionsToTxnTransaction", "4+"
    )
    v3_and_below_transactional_id: str = field("string", "0-3")
    v3_and_below_producer_id: int = field("int64", "0-3")
    v3_and_below_producer_epoch: int = field("int16", "0-3")
    v3_and_below_topics: Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = field(
        "[]AddPartitionsToTxnTopic", "0-3"
    )


@response(ApiKey.ADD_PARTITIONS_TO_TXN, "0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    """One error a partition."""

    @struct
    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int = field("int32", "0+")
        partition_error_code: int = field("int16", "0+")

    @struct
    class AddPartitionsToTxnTopicResult(Struct):
        name: str = field("string", "0+")
        results_by_partition: Sequence[
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
        ] = field("[]AddPartitionsToTxnPartitionResult", "0+")

    @struct
    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = field("string", "4+")
        topic_results: Sequence[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = field(
            "[]AddPartitionsToTxnTopicResult", "4+"
        )

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "4+")
    results_by_transaction: Sequence[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = field(
        "[]AddPartitionsToTxnResult", "4+"
    )
    results_by_topic_v3_and_below: Sequence[
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    ] = field("[]AddPartitionsToTxnTopicResult", "0-3")
