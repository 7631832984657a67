"""DescribeCluster: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_CLUSTER, "0-1", flexible="0+")
class DescribeClusterRequest(Message):
    """What the cluster is."""

    include_cluster_authorized_operations: bool = field("bool", "0+")
    endpoint_type: int = field("int8", "1+", default=1)


@response(ApiKey.DESCRIBE_CLUSTER, "0-1", flexible="0+")
class DescribeClusterResponse(Message):
    """Cluster id, controller and brokers."""

    @struct
    class DescribeClusterBroker(Struct):
        broker_id: int = field("int32", "0+")
        host: str = field("string", "0+")
        port: int = field("int32", "0+")
        rack: str | None = field("string", "0+", nullable="0+", default=None)

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+", default=None)
    endpoint_type: int = field("int8", "1+", default=1)
    cluster_id: str = field("string", "0+")
    controller_id: int = field("int32", "0+", default=-1)
    brokers: Sequence[DescribeClusterResponse.DescribeClusterBroker] = field(
        "[]DescribeClusterBroker", "0+"
    )
    cluster_authorized_operations: int = field("int32", "0+", default=-2147483648)
