"""Produce: records of clients to the leaders of partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from urteil.broker.api.authorization import allowed_names, may
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.leader_hints import ProduceHints
from urteil.broker.api.registry import CloseConnection, RequestContext, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.base.topic_names import is_internal
from urteil.broker.log.log_results import AppendResult
from urteil.broker.log.transaction_verification import Guard
from urteil.broker.replication.partition import refusal
from urteil.broker.replication.replica_manager import VALID_ACKS, TopicPartition
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.transactions.partition_verifier import Claim, unverified_result
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.batches import (
    HEADER_BYTES,
    NEWEST_MAGIC,
    BatchHeader,
    Compression,
    CorruptBatch,
    has_transactional_bit,
    is_sole_batch,
    iter_entries,
    parse_header,
)
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import ProduceRequest, ProduceResponse

ADMIN_CLIENT = "__admin_client"
ABORTABLE_FROM = 11  # the version from which TRANSACTION_ABORTABLE is known

PLACELESS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""Errors of a failed append whose response has no log start offset
(`ReplicaManager.appendToLocalLog`)."""

Answers = dict[TopicPartition, AppendResult]
INTERNAL = refusal(ErrorCode.INVALID_TOPIC_EXCEPTION)
INVALID_ACKS = ErrorCode.INVALID_REQUIRED_ACKS
MORE_THAN_ONE_PRODUCER = refusal(
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    "Transactional records contained more than one producer ID",
)


@handler(ApiKey.PRODUCE, 0, 11)
async def produce(
    broker: BrokerParts, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | None:
    """Append and answer by acks; with acks=0 an error can only close the connection."""
    entries: dict[TopicPartition, memoryview] = {}
    rejected: Answers = {}
    transactional: dict[TopicPartition, BatchHeader] = {}
    request_error = _request_error(broker, context, request)
    forbidden = _unauthorized_topics(broker, context, request)
    async for key, records in yield_items(_partitions(request)):
        if request_error is not None:
            rejected[key] = request_error
        elif key[0] in forbidden:
            rejected[key] = refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif broker.metadata.partition(*key) is None:
            rejected[key] = refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            checked = _check(records, context.version)
            if isinstance(checked, AppendResult):
                rejected[key] = checked
            elif is_internal(key[0]) and context.header.client_id != ADMIN_CLIENT:
                rejected[key] = INTERNAL if request.acks in VALID_ACKS else refusal(INVALID_ACKS)
            else:
                entries[key] = records
                if checked is not None:
                    transactional[key] = checked
    if (
        len(
            {
                (batch_header.producer_id, batch_header.producer_epoch)
                for batch_header in transactional.values()
            }
        )
        > 1
    ):
        rejected = dict.fromkeys([*entries, *rejected], MORE_THAN_ONE_PRODUCER)
    guards = await _verify(broker, context, request, transactional, rejected)
    answers = await broker.replicas.append(
        request.timeout_ms,
        request.acks,
        {key: records for key, records in entries.items() if key not in rejected}
        if transactional
        else entries,
        guards=guards,
    )
    if rejected:
        answers.update(rejected)
    if request.acks == 0:
        if any(answer.error is not ErrorCode.NONE for answer in answers.values()):
            raise CloseConnection
        return None
    return await _response(broker, context, request, answers)


def _request_error(
    broker: BrokerParts, context: RequestContext, request: ProduceRequest
) -> AppendResult | None:
    """The error of all partitions because of one first batch: it is corrupt, or belongs to a
    transaction that the client may not write (`RequestUtils.hasTransactionalRecords`)."""
    name = request.transactional_id
    try:
        is_transactional = any(_is_transactional(records) for _, records in _partitions(request))
    except CorruptBatch as error:
        return refusal(ErrorCode.CORRUPT_MESSAGE, str(error))
    if not is_transactional or (
        name is not None
        and may(broker, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    ):
        return None
    return refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _is_transactional(records: memoryview) -> bool:
    """Whether the first batch is transactional. Raises CorruptBatch."""
    if len(records) < HEADER_BYTES or not is_sole_batch(records):
        magic, records = next(iter_entries(records), (0, records))
        if magic < NEWEST_MAGIC:
            return False
    return has_transactional_bit(records)


def _unauthorized_topics(
    broker: BrokerParts, context: RequestContext, request: ProduceRequest
) -> Collection[str]:
    """Topics that the client may not write to."""
    if broker.authorizer is None:
        return ()
    names = [topic.name for topic in request.topic_data]
    allowed = allowed_names(broker, context, Operation.WRITE, ResourceType.TOPIC, names)
    return {name for name in names if name not in allowed}


def _partitions(request: ProduceRequest) -> Iterator[tuple[TopicPartition, memoryview]]:
    for topic in request.topic_data:
        for data in topic.partition_data:
            yield (topic.name, data.index), data.records or memoryview(b"")  # type: ignore[misc]


async def _verify(
    broker: BrokerParts,
    context: RequestContext,
    request: ProduceRequest,
    transactional: dict[TopicPartition, BatchHeader],
    rejected: Answers,
) -> Mapping[TopicPartition, Guard]:
    """Guards for transactional batches; those that the coordinator rejects go to `rejected`."""
    if not transactional or rejected.keys() >= transactional.keys():
        return {}
    assert request.transactional_id is not None  # `_request_error` rejects transactions without it
    guards, errors = await broker.verifier.verify(
        request.transactional_id,
        {
            key: Claim(header.producer_id, header.producer_epoch, header.base_sequence)
            for key, header in transactional.items()
        },
        knows_abortable=context.version >= ABORTABLE_FROM,
    )
    rejected.update({key: unverified_result(error) for key, error in errors.items()})
    return guards


def _check(records: memoryview, version: int) -> BatchHeader | AppendResult | None:
    """Check the records by the request's version (`ProduceRequest.validateRecords`).

    Returns the header of a transactional batch, None for others.
    """
    try:
        if version < 3:
            return None
        magics = [2] if is_sole_batch(records) else [magic for magic, _ in iter_entries(records)]
        if not magics:
            return refusal(ErrorCode.INVALID_RECORD, "a partition without a whole record batch")
        if magics[0] < 2:
            return refusal(
                ErrorCode.INVALID_RECORD,
                f"Produce {version} takes record batches with magic version 2 only",
            )
        header = parse_header(records)
    except CorruptBatch as error:
        return refusal(ErrorCode.CORRUPT_MESSAGE, str(error))
    if version < 7 and header.compression == Compression.ZSTD:
        return refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no zstd in Produce {version}")
    if len(magics) > 1:
        return refusal(
            ErrorCode.INVALID_RECORD,
            f"Produce {version} takes exactly one record batch per partition",
        )
    return header if header.is_transactional and header.producer_id >= 0 else None


async def _response(
    broker: BrokerParts, context: RequestContext, request: ProduceRequest, answers: Answers
) -> ProduceResponse:
    """One result for each topic and partition, even if the request repeats it."""
    hints = ProduceHints(broker, context)
    topics: dict[str, list[ProduceResponse.PartitionProduceResponse]] = {}
    async for name, index in yield_items(dict.fromkeys(key for key, _ in _partitions(request))):
        answer = _partition_response(name, index, answers[name, index], hints)
        topics.setdefault(name, []).append(answer)
    responses = [
        ProduceResponse.TopicProduceResponse(name=name, partition_responses=partitions)
        for name, partitions in topics.items()
    ]
    return ProduceResponse(responses=responses, node_endpoints=hints.nodes())


def _partition_response(
    topic: str, index: int, answer: AppendResult, hints: ProduceHints
) -> ProduceResponse.PartitionProduceResponse:
    if answer.error is ErrorCode.NONE:
        return ProduceResponse.PartitionProduceResponse(
            index=index,
            base_offset=answer.base_offset,
            log_append_time_ms=answer.log_append_time_ms,
            log_start_offset=answer.log_start_offset,
        )
    knows_start = answer.base_offset >= 0 or answer.error not in PLACELESS
    return ProduceResponse.PartitionProduceResponse(
        index=index,
        error_code=answer.error,
        base_offset=answer.base_offset,
        log_append_time_ms=answer.log_append_time_ms,
        log_start_offset=answer.log_start_offset if knows_start else -1,
        record_errors=[
            ProduceResponse.BatchIndexAndErrorMessage(
                batch_index=place, batch_index_error_message=reason
            )
            for place, reason in answer.record_errors
        ],
        error_message=answer.message,
        current_leader=hints.leader(topic, index, answer.error),
    )
