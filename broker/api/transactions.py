"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from urteil.broker.api.authorization import allowed_names, may, may_cluster
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.api.transaction_errors import fencing_error
from urteil.broker.base.offload import yield_items
from urteil.broker.base.topic_names import is_internal
from urteil.broker.groups.coordinator import OFFSETS_TOPIC
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.transactions.transaction import TopicPartition
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
)

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

BATCHED_FROM = 4  # AddPartitionsToTxn of brokers, for several transactions
FENCED_FROM = 2  # the version from which PRODUCER_FENCED is known

Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
Results = list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]


@handler(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5)
async def add_partitions_to_txn(
    broker: BrokerParts, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """One transaction of a client or, from version 4 on, several of brokers, which mostly verify.

    Clients cannot add internal topics.
    """
    if context.version < BATCHED_FROM:
        transactional_id = request.v3_and_below_transactional_id
        if not _may_write(broker, context, transactional_id):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=await _same_errors(request.v3_and_below_topics, error)
            )
        names = [topic.name for topic in request.v3_and_below_topics if not is_internal(topic.name)]
        allowed = allowed_names(broker, context, Operation.WRITE, ResourceType.TOPIC, names)
        results_of_topics = await _add(
            broker,
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            request.v3_and_below_topics,
            allowed,
            knows_fenced=context.version >= FENCED_FROM,
        )
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results_of_topics)
    if not may_cluster(broker, context, Operation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = []
    async for txn in yield_items(request.transactions):
        producer = (txn.transactional_id, txn.producer_id, txn.producer_epoch)
        if txn.verify_only:
            known, errors = await _split_known(broker, txn.topics)
            if not errors:
                errors = broker.transactions.verify(*producer, known)
            else:
                errors |= dict.fromkeys(known, ErrorCode.OPERATION_NOT_ATTEMPTED)
            results_of_topics = await _results(errors)
        else:
            results_of_topics = await _add(broker, *producer, txn.topics)
        results.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=txn.transactional_id, topic_results=results_of_topics
            )
        )
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _may_write(broker: BrokerParts, context: RequestContext, transactional_id: str) -> bool:
    resource = (ResourceType.TRANSACTIONAL_ID, transactional_id)
    return may(broker, context, Operation.WRITE, *resource)


async def _add(
    broker: BrokerParts,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    topics: Topics,
    allowed: Collection[str] | None = None,
    *,
    knows_fenced: bool = True,
) -> Results:
    """Add all partitions or none: if one does not exist, the others are not attempted."""
    known, errors = await _split_known(broker, topics, allowed)
    if errors:
        return await _results(errors | dict.fromkeys(known, ErrorCode.OPERATION_NOT_ATTEMPTED))
    error = await broker.transactions.add_partitions(
        transactional_id, producer_id, producer_epoch, known
    )
    return await _same_errors(topics, fencing_error(error, knows=knows_fenced))


async def _split_known(
    broker: BrokerParts, topics: Topics, allowed: Collection[str] | None = None
) -> tuple[list[TopicPartition], dict[TopicPartition, ErrorCode]]:
    known: list[TopicPartition] = []
    errors: dict[TopicPartition, ErrorCode] = {}
    async for place in yield_items(
        (topic.name, partition) for topic in topics for partition in topic.partitions
    ):
        if allowed is not None and place[0] not in allowed:
            errors[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif broker.metadata.partition(*place) is None:
            errors[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            known.append(place)
    return known, errors


async def _same_errors(topics: Topics, error: ErrorCode) -> Results:
    """The same error for every requested partition, repeated ones included."""
    return [
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=error
                )
                async for partition in yield_items(topic.partitions)
            ],
        )
        async for topic in yield_items(topics)
    ]


async def _results(errors: Mapping[TopicPartition, ErrorCode]) -> Results:
    topics: dict[str, list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]] = {}
    async for (topic, partition), error in yield_items(errors.items()):
        topics.setdefault(topic, []).append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                partition_index=partition, partition_error_code=error
            )
        )
    return [
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
            name=name, results_by_partition=partitions
        )
        async for name, partitions in yield_items(topics.items())
    ]


@handler(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4)
async def add_offsets_to_txn(
    broker: BrokerParts, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Add the group's partition of the offsets topic to the transaction."""
    if not _may_write(broker, context, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not may(broker, context, Operation.READ, ResourceType.GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = await broker.transactions.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))],
    )
    return AddOffsetsToTxnResponse(
        error_code=fencing_error(error, knows=context.version >= FENCED_FROM)
    )


@handler(ApiKey.END_TXN, 0, 4)
async def end_txn(
    broker: BrokerParts, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse:
    if not _may_write(broker, context, request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    error = await broker.transactions.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        commit=request.committed,
    )
    return EndTxnResponse(error_code=fencing_error(error, knows=context.version >= FENCED_FROM))
