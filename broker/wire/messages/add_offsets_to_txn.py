"""AddOffsetsToTxn: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.ADD_OFFSETS_TO_TXN, "0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message):
    """A group whose offsets a transaction will commit."""

    transactional_id: str = field("string", "0+")
    producer_id: int = field("int64", "0+")
    producer_epoch: int = field("int16", "0+")
    group_id: str = field("string", "0+")


@response(ApiKey.ADD_OFFSETS_TO_TXN, "0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    """An error or none."""

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
