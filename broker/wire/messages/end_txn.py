"""EndTxn: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.END_TXN, "0-4", flexible="3+")
class EndTxnRequest(Message):
    """Commit or abort."""

    transactional_id: str = field("string", "0+")
    producer_id: int = field("int64", "0+")
    producer_epoch: int = field("int16", "0+")
    committed: bool = field("bool", "0+")


@response(ApiKey.END_TXN, "0-4", flexible="3+")
class EndTxnResponse(Message):
    """An error or none: the outcome is decided, its markers may be on their way."""

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
