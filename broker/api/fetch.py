"""Fetch: records for consumers and followers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from urteil.broker.api.leader_hints import FetchHints
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.replication.reading import CONSUMER, READ_COMMITTED, FetchTerms, PartitionRead
from urteil.broker.replication.wanted import Wanted
from urteil.broker.server.broker import Broker
from urteil.broker.server.fetch_sessions import INITIAL_EPOCH, FetchSession
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.batches import CorruptBatch, UnsupportedCompression, down_convert
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, FetchResponse

BATCHES_FROM = 4
ZSTD_FROM = 10
ANY_REPLICA_FROM = 11
NOT_HERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@handler(ApiKey.FETCH, 0, 17)
async def fetch(broker: Broker, context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Read up to the reader's bound, waiting for min_bytes up to max_wait_ms.

    Only followers are given sessions (KIP-227 leaves that to the broker).
    """
    terms = _terms(broker, context, request)
    if terms.is_follower and context.version >= 13:
        session = broker.fetch_sessions.use(request)
        if isinstance(session, ErrorCode):
            return FetchResponse(error_code=session)
        if session is not None:
            return await _fetch_in_session(broker, context, request, terms, session)
    elif request.session_epoch > 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    wanted = [
        _wanted(broker, context, topic, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    reads = await broker.replicas.fetch(terms, wanted)
    if not terms.is_follower:
        broker.replicas.traffic.sent(wanted, reads)
    return _response(broker, context, request, wanted, reads)


async def _fetch_in_session(
    broker: Broker,
    context: RequestContext,
    request: FetchRequest,
    terms: FetchTerms,
    session: FetchSession,
) -> FetchResponse:
    wanted = session.take(request, lambda topic_id, asked: _by_id(broker, topic_id, asked))
    reads = await broker.replicas.fetch(terms, wanted)
    hints = FetchHints(broker, context)
    topics: dict[UUID, list[FetchResponse.PartitionData]] = {}
    is_full = request.session_epoch == INITIAL_EPOCH
    for topic_id, one, read in session.news(reads, is_full=is_full):
        topics.setdefault(topic_id, []).append(_partition(one, read, context.version, hints))
    return FetchResponse(
        session_id=session.id,
        responses=[
            FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
        node_endpoints=hints.nodes(),
    )


def _terms(broker: Broker, context: RequestContext, request: FetchRequest) -> FetchTerms:
    version = context.version
    read_committed = request.isolation_level == READ_COMMITTED
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    replica_id = request.replica_state.replica_id if version >= 15 else request.replica_id
    return FetchTerms(
        replica_id=replica_id,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        read_committed=read_committed,
        hard_limit=version <= 2,
        lend=version >= BATCHES_FROM and not read_committed,  # those have to be looked into
        any_replica=replica_id == CONSUMER and version >= ANY_REPLICA_FROM,
    )


def _wanted(
    broker: Broker,
    context: RequestContext,
    topic: FetchRequest.FetchTopic,
    asked: FetchRequest.FetchPartition,
) -> Wanted:
    if context.version >= 13:
        return _by_id(broker, topic.topic_id, asked)
    return broker.replicas.wanted(topic.topic, asked)


def _by_id(broker: Broker, topic_id: UUID, asked: FetchRequest.FetchPartition) -> Wanted:
    name = broker.replicas.topic_name(topic_id)
    if not name:
        return Wanted("", None, asked, ErrorCode.UNKNOWN_TOPIC_ID)
    wanted = broker.replicas.wanted(name, asked)
    if wanted.partition is not None and wanted.partition.topic_id != topic_id:
        return Wanted(name, None, asked, ErrorCode.INCONSISTENT_TOPIC_ID)
    return wanted


def _response(
    broker: Broker,
    context: RequestContext,
    request: FetchRequest,
    wanted: Sequence[Wanted],
    reads: Sequence[PartitionRead],
) -> FetchResponse:
    hints = FetchHints(broker, context)
    answers = zip(wanted, reads, strict=True)
    responses = [
        FetchResponse.FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[
                _partition(*next(answers), context.version, hints) for _ in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return FetchResponse(responses=responses, node_endpoints=hints.nodes())


def _partition(
    wanted: Wanted, read: PartitionRead, version: int, hints: FetchHints
) -> FetchResponse.PartitionData:
    topic, index = wanted.topic, wanted.request.partition
    records: Any = read.records
    refused = _too_old(wanted, version)
    if version < BATCHES_FROM and records and refused is ErrorCode.NONE:
        records = _for_old_client(records, version, wanted.request.fetch_offset)
        if isinstance(records, ErrorCode):
            refused = records
    if refused is not ErrorCode.NONE:
        return FetchResponse.PartitionData(
            partition_index=index, error_code=refused, high_watermark=-1, aborted_transactions=()
        )
    if read.error is not ErrorCode.NONE:
        return _refused(topic, index, read.error, hints)
    return FetchResponse.PartitionData(
        partition_index=index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        diverging_epoch=FetchResponse.EpochEndOffset(
            epoch=read.diverging_epoch, end_offset=read.diverging_end_offset
        ),
        aborted_transactions=_aborted(read),
        records=records or b"",
    )


def _too_old(wanted: Wanted, version: int) -> ErrorCode:
    """Whether a topic's settings close it to readers of this version."""
    if version >= ZSTD_FROM or wanted.partition is None:
        return ErrorCode.NONE
    config = wanted.partition.log.config
    if config.compression_type == "zstd":
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if version < BATCHES_FROM and not config.message_downconversion_enable:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def _aborted(read: PartitionRead) -> list[FetchResponse.AbortedTransaction] | None:
    if read.aborted is None:
        return None
    return [
        FetchResponse.AbortedTransaction(producer_id=one[0], first_offset=one[1])
        for one in read.aborted
    ]


def _refused(
    topic: str, index: int, error: ErrorCode, hints: FetchHints
) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=-1,
        current_leader=hints.leader(topic, index, error),
        aborted_transactions=() if error in NOT_HERE else None,
        records=b"",
    )


def _for_old_client(
    records: Sequence[Any], version: int, from_offset: int
) -> list[bytes] | ErrorCode:
    """Batches as message sets of magic 0 (Fetch 0 and 1) or 1 (2 and 3)."""
    try:
        return [down_convert(b"".join(records), 0 if version < 2 else 1, from_offset=from_offset)]
    except UnsupportedCompression:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    except CorruptBatch:
        return ErrorCode.CORRUPT_MESSAGE
