"""DeleteRecords: deletes the records before an offset, on the leader and every live follower."""

from __future__ import annotations

from collections.abc import Collection

from urteil.broker.api.authorization import allowed_names
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.topic_names import is_internal
from urteil.broker.replication.record_deletion import DeletionResult, RecordDeletion
from urteil.broker.replication.replica_manager import TopicPartition
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse


@handler(ApiKey.DELETE_RECORDS, 0, 2, topics="topics")
async def delete_records(
    broker: BrokerParts, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """A low watermark or an error for each partition; the last offset of a repeated one counts."""
    rejected: dict[TopicPartition, DeletionResult] = {}
    offsets: dict[TopicPartition, int] = {}
    names = [topic.name for topic in request.topics]
    allowed = allowed_names(broker, context, Operation.DELETE, ResourceType.TOPIC, names)
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            error = _find_error(broker, key, allowed)
            if error is ErrorCode.NONE:
                offsets[key] = partition.offset
            else:
                rejected[key] = DeletionResult(error)
    answers = await RecordDeletion(broker.replicas).run(offsets, request.timeout_ms)
    return _response(answers | rejected)


def _find_error(broker: BrokerParts, key: TopicPartition, allowed: Collection[str]) -> ErrorCode:
    if key[0] not in allowed:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if broker.metadata.partition(*key) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION if is_internal(key[0]) else ErrorCode.NONE


def _response(answers: dict[TopicPartition, DeletionResult]) -> DeleteRecordsResponse:
    topics: dict[str, list[DeleteRecordsResponse.DeleteRecordsPartitionResult]] = {}
    for (topic, partition), answer in answers.items():
        topics.setdefault(topic, []).append(
            DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=partition,
                low_watermark=answer.low_watermark,
                error_code=answer.error,
            )
        )
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.DeleteRecordsTopicResult(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )
