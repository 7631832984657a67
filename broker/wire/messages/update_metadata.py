"""UpdateMetadata: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.UPDATE_METADATA, "0-8", flexible="6+")
class UpdateMetadataRequest(Message):
    """The controller spreads partition states and live brokers."""

    @struct
    class UpdateMetadataPartitionState(Struct):
        topic_name: str = field("string", "0-4")
        partition_index: int = field("int32", "0+")
        controller_epoch: int = field("int32", "0+")
        leader: int = field("int32", "0+")
        leader_epoch: int = field("int32", "0+")
        isr: Sequence[int] = field("[]int32", "0+")
        zk_version: int = field("int32", "0+")
        replicas: Sequence[int] = field("[]int32", "0+")
        offline_replicas: Sequence[int] = field("[]int32", "4+")

    @struct
    class UpdateMetadataTopicState(Struct):
        topic_name: str = field("string", "5+")
        topic_id: UUID = field("uuid", "7+")
        partition_states: Sequence[UpdateMetadataRequest.UpdateMetadataPartitionState] = field(
            "[]UpdateMetadataPartitionState", "5+"
        )

    @struct
    class UpdateMetadataEndpoint(Struct):
        port: int = field("int32", "1+")
        host: str = field("string", "1+")
        listener: str = field("string", "3+")
        security_protocol: int = field("int16", "1+")

    @struct
    class UpdateMetadataBroker(Struct):
        id: int = field("int32", "0+")
        v0_host: str = field("string", "0")
        v0_port: int = field("int32", "0")
        endpoints: Sequence[UpdateMetadataRequest.UpdateMetadataEndpoint] = field(
            "[]UpdateMetadataEndpoint", "1+"
        )
        rack: str | None = field("string", "2+", nullable="0+")

    controller_id: int = field("int32", "0+")
    is_kraft_controller: bool = field("bool", "8+")
    type: int = field("int8", "8+", tag=0, tagged="8+")
    controller_epoch: int = field("int32", "0+")
    broker_epoch: int = field("int64", "5+", default=-1)
    ungrouped_partition_states: Sequence[UpdateMetadataRequest.UpdateMetadataPartitionState] = (
        field("[]UpdateMetadataPartitionState", "0-4")
    )
    topic_states: Sequence[UpdateMetadataRequest.UpdateMetadataTopicState] = field(
        "[]UpdateMetadataTopicState", "5+"
    )
    live_brokers: Sequence[UpdateMetadataRequest.UpdateMetadataBroker] = field(
        "[]UpdateMetadataBroker", "0+"
    )


@response(ApiKey.UPDATE_METADATA, "0-8", flexible="6+")
class UpdateMetadataResponse(Message):
    """An error alone."""

    error_code: int = field("int16", "0+")
