"""AlterPartition: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ALTER_PARTITION, "0-3", flexible="0+")
class AlterPartitionRequest(Message):
    """A leader proposes an ISR to the controller (KIP-497)."""

    @struct
    class BrokerState(Struct):
        broker_id: int = field("int32", "3+")
        broker_epoch: int = field("int64", "3+", default=-1)

    @struct
    class PartitionData(Struct):
        partition_index: int = field("int32", "0+")
        leader_epoch: int = field("int32", "0+")
        new_isr: Sequence[int] = field("[]int32", "0-2")
        new_isr_with_epochs: Sequence[AlterPartitionRequest.BrokerState] = field(
            "[]BrokerState", "3+"
        )
        leader_recovery_state: int = field("int8", "1+")
        partition_epoch: int = field("int32", "0+")

    @struct
    class TopicData(Struct):
        topic_name: str = field("string", "0-1")
        topic_id: UUID = field("uuid", "2+")
        partitions: Sequence[AlterPartitionRequest.PartitionData] = field("[]PartitionData", "0+")

    broker_id: int = field("int32", "0+")
    broker_epoch: int = field("int64", "0+", default=-1)
    topics: Sequence[AlterPartitionRequest.TopicData] = field("[]TopicData", "0+")


@response(ApiKey.ALTER_PARTITION, "0-3", flexible="0+")
class AlterPartitionResponse(Message):
    """The state that came of it, one a partition."""

    @struct
    class PartitionData(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")
        leader_id: int = field("int32", "0+")
        leader_epoch: int = field("int32", "0+")
        isr: Sequence[int] = field("[]int32", "0+")
        leader_recovery_state: int = field("int8", "1+")
        partition_epoch: int = field("int32", "0+")

    @struct
    class TopicData(Struct):
        topic_name: str = field("string", "0-1")
        topic_id: UUID = field("uuid", "2+")
        partitions: Sequence[AlterPartitionResponse.PartitionData] = field("[]PartitionData", "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    topics: Sequence[AlterPartitionResponse.TopicData] = field("[]TopicData", "0+")
