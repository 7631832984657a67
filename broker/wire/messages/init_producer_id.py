"""InitProducerId: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.INIT_PRODUCER_ID, "0-5", flexible="2+")
class InitProducerIdRequest(Message):
    """A producer id for an idempotent or transactional producer."""

    transactional_id: str | None = field("string", "0+", nullable="0+")
    transaction_timeout_ms: int = field("int32", "0+")
    producer_id: int = field("int64", "3+", default=-1)
    producer_epoch: int = field("int16", "3+", default=-1)


@response(ApiKey.INIT_PRODUCER_ID, "0-5", flexible="2+")
class InitProducerIdResponse(Message):
    """Producer id and epoch."""

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    producer_id: int = field("int64", "0+", default=-1)
    producer_epoch: int = field("int16", "0+")
