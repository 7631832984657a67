"""WriteTxnMarkers: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.WRITE_TXN_MARKERS, "0-1", flexible="1+")
class WriteTxnMarkersRequest(Message):
    """Markers that end transactions, for the partitions that the receiver leads."""

    @struct
    class WritableTxnMarkerTopic(Struct):
        name: str = field("string", "0+")
        partition_indexes: Sequence[int] = field("[]int32", "0+")

    @struct
    class WritableTxnMarker(Struct):
        producer_id: int = field("int64", "0+")
        producer_epoch: int = field("int16", "0+")
        transaction_result: bool = field("bool", "0+")
        topics: Sequence[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = field(
            "[]WritableTxnMarkerTopic", "0+"
        )
        coordinator_epoch: int = field("int32", "0+")

    markers: Sequence[WriteTxnMarkersRequest.WritableTxnMarker] = field("[]WritableTxnMarker", "0+")


@response(ApiKey.WRITE_TXN_MARKERS, "0-1", flexible="1+")
class WriteTxnMarkersResponse(Message):
    """One error a partition and marker."""

    @struct
    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")

    @struct
    class WritableTxnMarkerTopicResult(Struct):
        name: str = field("string", "0+")
        partitions: Sequence[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = field(
            "[]WritableTxnMarkerPartitionResult", "0+"
        )

    @struct
    class WritableTxnMarkerResult(Struct):
        producer_id: int = field("int64", "0+")
        topics: Sequence[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = field(
            "[]WritableTxnMarkerTopicResult", "0+"
        )

    markers: Sequence[WriteTxnMarkersResponse.WritableTxnMarkerResult] = field(
        "[]WritableTxnMarkerResult", "0+"
    )
