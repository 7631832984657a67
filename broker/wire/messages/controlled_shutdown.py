"""ControlledShutdown: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.CONTROLLED_SHUTDOWN, "0-3", flexible="3+")
class ControlledShutdownRequest(Message):
    """A broker asks the controller to move its leaders away."""

    broker_id: int = field("int32", "0+")
    broker_epoch: int = field("int64", "2+", default=-1)


@response(ApiKey.CONTROLLED_SHUTDOWN, "0-3", flexible="3+")
class ControlledShutdownResponse(Message):
    """Partitions that still are led by the broker."""

    @struct
    class RemainingPartition(Struct):
        topic_name: str = field("string", "0+")
        partition_index: int = field("int32", "0+")

    error_code: int = field("int16", "0+")
    remaining_partitions: Sequence[ControlledShutdownResponse.RemainingPartition] = field(
        "[]RemainingPartition", "0+"
    )
