"""ListTransactions: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.LIST_TRANSACTIONS, "0-1", flexible="0+")
class ListTransactionsRequest(Message):
    """Which transactions; empty filters let all through."""

    state_filters: Sequence[str] = field("[]string", "0+")
    producer_id_filters: Sequence[int] = field("[]int64", "0+")
    duration_filter: int = field("int64", "1+", default=-1)


@response(ApiKey.LIST_TRANSACTIONS, "0-1", flexible="0+")
class ListTransactionsResponse(Message):
    """Transactions that this broker coordinates."""

    @struct
    class TransactionState(Struct):
        transactional_id: str = field("string", "0+")
        producer_id: int = field("int64", "0+")
        transaction_state: str = field("string", "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    unknown_state_filters: Sequence[str] = field("[]string", "0+")
    transaction_states: Sequence[ListTransactionsResponse.TransactionState] = field(
        "[]TransactionState", "0+"
    )
