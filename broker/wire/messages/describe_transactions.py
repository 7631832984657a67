"""DescribeTransactions: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_TRANSACTIONS, "0", flexible="0+")
class DescribeTransactionsRequest(Message):
    """Transactional ids."""

    transactional_ids: Sequence[str] = field("[]string", "0+")


@response(ApiKey.DESCRIBE_TRANSACTIONS, "0", flexible="0+")
class DescribeTransactionsResponse(Message):
    """The state of each."""

    @struct
    class TopicData(Struct):
        topic: str = field("string", "0+")
        partitions: Sequence[int] = field("[]int32", "0+")

    @struct
    class TransactionState(Struct):
        error_code: int = field("int16", "0+")
        transactional_id: str = field("string", "0+")
        transaction_state: str = field("string", "0+")
        transaction_timeout_ms: int = field("int32", "0+")
        transaction_start_time_ms: int = field("int64", "0+")
        producer_id: int = field("int64", "0+")
        producer_epoch: int = field("int16", "0+")
        topics: Sequence[DescribeTransactionsResponse.TopicData] = field("[]TopicData", "0+")

    throttle_time_ms: int = field("int32", "0+")
    transaction_states: Sequence[DescribeTransactionsResponse.TransactionState] = field(
        "[]TransactionState", "0+"
    )
