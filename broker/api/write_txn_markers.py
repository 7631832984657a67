"""WriteTxnMarkers: a coordinator ends transactions in the partitions that this broker leads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from urteil.broker.api.authorization import may_cluster
from urteil.broker.api.registry import RequestContext, RequestError, handler
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.transactions.marker_sender import Marker, Outcome
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

Result = WriteTxnMarkersResponse.WritableTxnMarkerResult


@handler(ApiKey.WRITE_TXN_MARKERS, 0, 1, markers="markers")
async def write_txn_markers(
    broker: BrokerParts, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """For transaction coordinators, and for principals that may ALTER the cluster (`abort`)."""
    if not may_cluster(broker, context, Operation.ALTER, quiet=True) and not may_cluster(
        broker, context, Operation.CLUSTER_ACTION
    ):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    orders = [
        (
            Marker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                commit=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
            ),
            tuple(
                (topic.name, index) for topic in marker.topics for index in topic.partition_indexes
            ),
        )
        for marker in request.markers
    ]
    if any(_has_no_producer(broker, *order) for order in orders):
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    outcomes = await broker.marker_writer.write(orders)
    outcome_by_producer: dict[int, Outcome] = {}  # one result for each producer
    for (marker, _), outcome in zip(orders, outcomes, strict=True):
        outcome_by_producer.setdefault(marker.producer_id, {}).update(outcome)
    return WriteTxnMarkersResponse(
        markers=[_result(*outcome) for outcome in outcome_by_producer.items()]
    )


def _has_no_producer(
    broker: BrokerParts, marker: Marker, places: Iterable[tuple[str, int]]
) -> bool:
    """Whether producer id or epoch is -1: Apache Kafka cannot build such a batch and fails all."""
    return -1 in (marker.producer_id, marker.producer_epoch) and any(
        broker.replicas.find_partition(*place)[0] is not None for place in places
    )


def _result(producer_id: int, outcome: Outcome) -> Result:
    topics: dict[str, list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]] = {}
    for (name, index), error in outcome.items():
        topics.setdefault(name, []).append(
            WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                partition_index=index, error_code=error
            )
        )
    return Result(
        producer_id=producer_id,
        topics=[
            WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
