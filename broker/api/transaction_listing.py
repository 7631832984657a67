"""DescribeTransactions, ListTransactions and DescribeProducers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from urteil.broker.api.authorization import allowed_names, may
from urteil.broker.api.error_responses import ERROR_MESSAGES
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.topic_names import name_error
from urteil.broker.log.producer_states import ProducerEntry
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.transactions.transaction import TxnMetadata, TxnState
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

TITLES = {state.title: state for state in TxnState}


@handler(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, transactional_ids="transaction_states")
async def describe_transactions(
    broker: BrokerParts, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            _describe_transaction(broker, context, transactional_id)
            for transactional_id in request.transactional_ids
        ]
    )


def _describe_transaction(
    broker: BrokerParts, context: RequestContext, transactional_id: str
) -> DescribeTransactionsResponse.TransactionState:
    """A transaction, with the topics that the client may describe."""
    resource = (ResourceType.TRANSACTIONAL_ID, transactional_id)
    if not may(broker, context, Operation.DESCRIBE, *resource):
        return DescribeTransactionsResponse.TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            transactional_id=transactional_id,
        )
    error, txn = ErrorCode.INVALID_REQUEST, None
    if transactional_id:
        error, txn = broker.transactions.describe(transactional_id)
    if txn is None:
        return DescribeTransactionsResponse.TransactionState(
            error_code=error, transactional_id=transactional_id
        )
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=txn.state.title,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_start_time_ms=txn.started_ms,
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in txn.by_topic().items()
            if may(broker, context, Operation.DESCRIBE, ResourceType.TOPIC, topic, quiet=True)
        ],
    )


@handler(ApiKey.LIST_TRANSACTIONS, 0, 1)
async def list_transactions(
    broker: BrokerParts, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """The transactions of this coordinator that pass all filters."""
    error, known = broker.transactions.transactions()
    if error is not ErrorCode.NONE:
        return ListTransactionsResponse(error_code=error)
    now_ms = broker.clock.now_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[
            name for name in dict.fromkeys(request.state_filters) if name not in TITLES
        ],
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=transactional_id,
                producer_id=txn.producer_id,
                transaction_state=txn.state.title,
            )
            for transactional_id, txn in known.items()
            if _passes(txn, request, now_ms)
            and may(
                broker,
                context,
                Operation.DESCRIBE,
                ResourceType.TRANSACTIONAL_ID,
                transactional_id,
            )
        ],
    )


def _passes(txn: TxnMetadata, request: ListTransactionsRequest, now_ms: int) -> bool:
    if request.state_filters and txn.state.title not in request.state_filters:
        return False
    if request.producer_id_filters and txn.producer_id not in request.producer_id_filters:
        return False
    return request.duration_filter < 0 or now_ms - txn.started_ms > request.duration_filter


@handler(ApiKey.DESCRIBE_PRODUCERS, 0, 0, topics="topics")
async def describe_producers(
    broker: BrokerParts, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """The producer states of replicas; followers answer, too."""
    names = [topic.name for topic in request.topics]
    allowed = allowed_names(broker, context, Operation.READ, ResourceType.TOPIC, names)
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    _producers(broker, topic.name, partition_index)
                    if topic.name in allowed
                    else DescribeProducersResponse.PartitionResponse(
                        partition_index=partition_index,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        error_message=ERROR_MESSAGES[ErrorCode.TOPIC_AUTHORIZATION_FAILED],
                    )
                    for partition_index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _producers(
    broker: BrokerParts, topic: str, index: int
) -> DescribeProducersResponse.PartitionResponse:
    why = name_error(topic)
    if why is not None:
        return DescribeProducersResponse.PartitionResponse(
            partition_index=index,
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION,
            error_message=why,
        )
    partition, error = broker.replicas.find_partition(topic, index)
    if partition is None:
        return DescribeProducersResponse.PartitionResponse(
            partition_index=index, error_code=error, error_message=ERROR_MESSAGES.get(error)
        )
    return DescribeProducersResponse.PartitionResponse(
        partition_index=index,
        active_producers=[_producer(entry) for entry in partition.log.producers.entries.values()],
    )


def _producer(producer: ProducerEntry) -> DescribeProducersResponse.ProducerState:
    first = producer.txn_first_offset
    return DescribeProducersResponse.ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=-1 if first is None else first,
    )
