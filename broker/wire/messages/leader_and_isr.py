"""LeaderAndIsr: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.LEADER_AND_ISR, "0-7", flexible="4+")
class LeaderAndIsrRequest(Message):
    """The controller makes a broker leader or follower."""

    @struct
    class LeaderAndIsrPartitionState(Struct):
        topic_name: str = field("string", "0-1")
        partition_index: int = field("int32", "0+")
        controller_epoch: int = field("int32", "0+")
        leader: int = field("int32", "0+")
        leader_epoch: int = field("int32", "0+")
        isr: Sequence[int] = field("[]int32", "0+")
        partition_epoch: int = field("int32", "0+")
        replicas: Sequence[int] = field("[]int32", "0+")
        adding_replicas: Sequence[int] = field("[]int32", "3+")
        removing_replicas: Sequence[int] = field("[]int32", "3+")
        is_new: bool = field("bool", "1+")
        leader_recovery_state: int = field("int8", "6+")

    @struct
    class LeaderAndIsrTopicState(Struct):
        topic_name: str = field("string", "2+")
        topic_id: UUID = field("uuid", "5+")
        partition_states: Sequence[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = field(
            "[]LeaderAndIsrPartitionState", "2+"
        )

    @struct
    class LeaderAndIsrLiveLeader(Struct):
        broker_id: int = field("int32", "0+")
        host_name: str = field("string", "0+")
        port: int = field("int32", "0+")

    controller_id: int = field("int32", "0+")
    is_kraft_controller: bool = field("bool", "7+")
    controller_epoch: int = field("int32", "0+")
    broker_epoch: int = field("int64", "2+", default=-1)
    type: int = field("int8", "5+")
    ungrouped_partition_states: Sequence[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = field(
        "[]LeaderAndIsrPartitionState", "0-1"
    )
    topic_states: Sequence[LeaderAndIsrRequest.LeaderAndIsrTopicState] = field(
        "[]LeaderAndIsrTopicState", "2+"
    )
    live_leaders: Sequence[LeaderAndIsrRequest.LeaderAndIsrLiveLeader] = field(
        "[]LeaderAndIsrLiveLeader", "0+"
    )


@response(ApiKey.LEADER_AND_ISR, "0-7", flexible="4+")
class LeaderAndIsrResponse(Message):
    """One error a partition."""

    @struct
    class LeaderAndIsrPartitionError(Struct):
        topic_name: str = field("string", "0-4")
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")

    @struct
    class LeaderAndIsrTopicError(Struct):
        topic_id: UUID = field("uuid", "5+")
        partition_errors: Sequence[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = field(
            "[]LeaderAndIsrPartitionError", "5+"
        )

    error_code: int = field("int16", "0+")
    partition_errors: Sequence[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = field(
        "[]LeaderAndIsrPartitionError", "0-4"
    )
    topics: Sequence[LeaderAndIsrResponse.LeaderAndIsrTopicError] = field(
        "[]LeaderAndIsrTopicError", "5+"
    )
