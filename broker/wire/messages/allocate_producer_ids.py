"""AllocateProducerIds: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.ALLOCATE_PRODUCER_IDS, "0", flexible="0+")
class AllocateProducerIdsRequest(Message):
    """A broker asks the controller for a block of producer ids."""

    broker_id: int = field("int32", "0+")
    broker_epoch: int = field("int64", "0+", default=-1)


@response(ApiKey.ALLOCATE_PRODUCER_IDS, "0", flexible="0+")
class AllocateProducerIdsResponse(Message):
    """First id and length of the block."""

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    producer_id_start: int = field("int64", "0+")
    producer_id_len: int = field("int32", "0+")
