"""StopReplica: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.STOP_REPLICA, "0-4", flexible="2+")
class StopReplicaRequest(Message):
    """The controller takes replicas away from a broker."""

    @struct
    class StopReplicaPartitionV0(Struct):
        topic_name: str = field("string", "0")
        partition_index: int = field("int32", "0")

    @struct
    class StopReplicaTopicV1(Struct):
        name: str = field("string", "1-2")
        partition_indexes: Sequence[int] = field("[]int32", "1-2")

    @struct
    class StopReplicaPartitionState(Struct):
        partition_index: int = field("int32", "3+")
        leader_epoch: int = field("int32", "3+", default=-1)
        delete_partition: bool = field("bool", "3+")

    @struct
    class StopReplicaTopicState(Struct):
        topic_name: str = field("string", "3+")
        partition_states: Sequence[StopReplicaRequest.StopReplicaPartitionState] = field(
            "[]StopReplicaPartitionState", "3+"
        )

    controller_id: int = field("int32", "0+")
    is_kraft_controller: bool = field("bool", "4+")
    controller_epoch: int = field("int32", "0+")
    broker_epoch: int = field("int64", "1+", default=-1)
    delete_partitions: bool = field("bool", "0-2")
    ungrouped_partitions: Sequence[StopReplicaRequest.StopReplicaPartitionV0] = field(
        "[]StopReplicaPartitionV0", "0"
    )
    topics: Sequence[StopReplicaRequest.StopReplicaTopicV1] = field("[]StopReplicaTopicV1", "1-2")
    topic_states: Sequence[StopReplicaRequest.StopReplicaTopicState] = field(
        "[]StopReplicaTopicState", "3+"
    )


@response(ApiKey.STOP_REPLICA, "0-4", flexible="2+")
class StopReplicaResponse(Message):
    """One error a partition."""

    @struct
    class StopReplicaPartitionError(Struct):
        topic_name: str = field("string", "0+")
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")

    error_code: int = field("int16", "0+")
    partition_errors: Sequence[StopReplicaResponse.StopReplicaPartitionError] = field(
        "[]StopReplicaPartitionError", "0+"
    )
