"""Metadata: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.METADATA, "0-12", flexible="9+")
class MetadataRequest(Message):
    """Brokers and the partitions of topics; null topics mean all."""

    @struct
    class MetadataRequestTopic(Struct):
        topic_id: UUID = field("uuid", "10+")
        name: str | None = field("string", "0+", nullable="10+")

    topics: Sequence[MetadataRequest.MetadataRequestTopic] | None = field(
        "[]MetadataRequestTopic", "0+", nullable="1+"
    )
    allow_auto_topic_creation: bool = field("bool", "4+", default=True)
    include_cluster_authorized_operations: bool = field("bool", "8-10")
    include_topic_authorized_operations: bool = field("bool", "8+")


@response(ApiKey.METADATA, "0-12", flexible="9+")
class MetadataResponse(Message):
    """Brokers, controller and partition leaders."""

    @struct
    class MetadataResponseBroker(Struct):
        node_id: int = field("int32", "0+")
        host: str = field("string", "0+")
        port: int = field("int32", "0+")
        rack: str | None = field("string", "1+", nullable="1+", default=None)

    @struct
    class MetadataResponsePartition(Struct):
        error_code: int = field("int16", "0+")
        partition_index: int = field("int32", "0+")
        leader_id: int = field("int32", "0+")
        leader_epoch: int = field("int32", "7+", default=-1)
        replica_nodes: Sequence[int] = field("[]int32", "0+")
        isr_nodes: Sequence[int] = field("[]int32", "0+")
        offline_replicas: Sequence[int] = field("[]int32", "5+")

    @struct
    class MetadataResponseTopic(Struct):
        error_code: int = field("int16", "0+")
        name: str | None = field("string", "0+", nullable="12+")
        topic_id: UUID = field("uuid", "10+")
        is_internal: bool = field("bool", "1+")
        partitions: Sequence[MetadataResponse.MetadataResponsePartition] = field(
            "[]MetadataResponsePartition", "0+"
        )
        topic_authorized_operations: int = field("int32", "8+", default=-2147483648)

    throttle_time_ms: int = field("int32", "3+")
    brokers: Sequence[MetadataResponse.MetadataResponseBroker] = field(
        "[]MetadataResponseBroker", "0+"
    )
    cluster_id: str | None = field("string", "2+", nullable="2+", default=None)
    controller_id: int = field("int32", "1+", default=-1)
    topics: Sequence[MetadataResponse.MetadataResponseTopic] = field(
        "[]MetadataResponseTopic", "0+"
    )
    cluster_authorized_operations: int = field("int32", "8-10", default=-2147483648)
