"""Responses that reject a whole request with an error (`getErrorResponse` of Apache Kafka's
requests)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from urteil.broker.wire.schema import Message

ERROR_MESSAGES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}
"""The messages of Apache Kafka's `Errors`, for responses that contain them."""

ResponseBuilder = Callable[[Any, int, ErrorCode], Message]
Builder = TypeVar("Builder", bound=ResponseBuilder)
_BUILDERS: dict[type[Message], ResponseBuilder] = {}


def error_response(request: Message, version: int, error: ErrorCode) -> Any:
    """The response in which every element of the request failed with this error."""
    return _BUILDERS[type(request)](request, version, error)


def _register_builder(request: type[Message]) -> Callable[[Builder], Builder]:
    def register(build: Builder) -> Builder:
        _BUILDERS[request] = build
        return build

    return register


def _error_builder(response: type[Any]) -> ResponseBuilder:
    def build(request: Message, version: int, error: ErrorCode) -> Message:
        made: Message = response(error_code=error)
        return made

    return build


for _request, _response in {
    UpdateMetadataRequest: UpdateMetadataResponse,
    ControlledShutdownRequest: ControlledShutdownResponse,
    AlterPartitionRequest: AlterPartitionResponse,
    AllocateProducerIdsRequest: AllocateProducerIdsResponse,
}.items():
    _BUILDERS[_request] = _error_builder(_response)


@_register_builder(LeaderAndIsrRequest)
def _leader_and_isr(
    request: LeaderAndIsrRequest, version: int, error: ErrorCode
) -> LeaderAndIsrResponse:
    failed = LeaderAndIsrResponse.LeaderAndIsrPartitionError
    if version < 5:
        places = [
            (state.topic_name, state.partition_index)
            for state in request.ungrouped_partition_states
        ] + [
            (topic.topic_name, partition_state.partition_index)
            for topic in request.topic_states
            for partition_state in topic.partition_states
        ]
        return LeaderAndIsrResponse(
            error_code=error,
            partition_errors=[
                failed(topic_name=name, partition_index=index, error_code=error)
                for name, index in places
            ],
        )
    return LeaderAndIsrResponse(
        error_code=error,
        topics=[
            LeaderAndIsrResponse.LeaderAndIsrTopicError(
                topic_id=topic.topic_id,
                partition_errors=[
                    failed(partition_index=partition_state.partition_index, error_code=error)
                    for partition_state in topic.partition_states
                ],
            )
            for topic in request.topic_states
        ],
    )


@_register_builder(StopReplicaRequest)
def _stop_replica(
    request: StopReplicaRequest, version: int, error: ErrorCode
) -> StopReplicaResponse:
    places = [
        (ungrouped_partition.topic_name, ungrouped_partition.partition_index)
        for ungrouped_partition in request.ungrouped_partitions
    ]
    places += [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    places += [
        (topic.topic_name, partition_state.partition_index)
        for topic in request.topic_states
        for partition_state in topic.partition_states
    ]
    return StopReplicaResponse(
        error_code=error,
        partition_errors=[
            StopReplicaResponse.StopReplicaPartitionError(
                topic_name=name, partition_index=index, error_code=error
            )
            for name, index in places
        ],
    )


@_register_builder(WriteTxnMarkersRequest)
def _write_txn_markers(
    request: WriteTxnMarkersRequest, version: int, error: ErrorCode
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


@_register_builder(AlterPartitionReassignmentsRequest)
def _alter_reassignments(
    request: AlterPartitionReassignmentsRequest, version: int, error: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    failed = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=not_authorized(error),
        responses=[
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    failed(
                        partition_index=partition.partition_index,
                        error_code=error,
                        error_message=not_authorized(error),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@_register_builder(ListPartitionReassignmentsRequest)
def _list_reassignments(
    request: ListPartitionReassignmentsRequest, version: int, error: ErrorCode
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error, error_message=not_authorized(error))


@_register_builder(AlterReplicaLogDirsRequest)
def _alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, version: int, error: ErrorCode
) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=error
                    )
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


@_register_builder(OffsetCommitRequest)
def _offset_commit(
    request: OffsetCommitRequest, version: int, error: ErrorCode
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@_register_builder(TxnOffsetCommitRequest)
def _txn_offset_commit(
    request: TxnOffsetCommitRequest, version: int, error: ErrorCode
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def not_authorized(error: ErrorCode) -> str:
    """The message for the client; Apache Kafka sends a dump of its own request object."""
    return f"{error.name}: the request is not authorized."


@_register_builder(ElectLeadersRequest)
def _elect_leaders(
    request: ElectLeadersRequest, version: int, error: ErrorCode
) -> ElectLeadersResponse:
    """One result for each topic and partition as requested, repeated or empty ones included."""
    return ElectLeadersResponse(
        error_code=error,
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersResponse.PartitionResult(
                        partition_id=partition, error_code=error, error_message=None
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


@_register_builder(FetchRequest)
def _fetch(request: FetchRequest, version: int, error: ErrorCode) -> FetchResponse:
    """From version 13 on without partitions. Before, each result of a repeated topic has all its
    partitions, as in Apache Kafka."""
    if version >= 13:
        return FetchResponse(error_code=error, session_id=request.session_id)
    asked: dict[str, list[int]] = {}
    for topic in request.topics:
        asked.setdefault(topic.topic, []).extend(
            partition.partition for partition in topic.partitions
        )
    failed = FetchResponse.PartitionData
    return FetchResponse(
        error_code=error,
        session_id=request.session_id,
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    failed(
                        partition_index=partition, error_code=error, high_watermark=-1, records=None
                    )
                    for partition in asked[topic.topic]
                ],
            )
            for topic in request.topics
        ],
    )
