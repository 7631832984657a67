"""Fetch: records for consumers and followers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from urteil.broker.api.authorization import allowed_names, may_cluster
from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.leader_hints import FetchHints
from urteil.broker.api.quota_charges import fetch_at_once, fetch_wait_ms
from urteil.broker.api.registry import RequestContext, RequestError, handler
from urteil.broker.base.offload import yield_items
from urteil.broker.config.java_classes import RACK_AWARE
from urteil.broker.replication.fetch_reader import NOT_SERVED
from urteil.broker.replication.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    LEAST_SESSION,
    MAX_SESSION,
    NO_SESSION,
    FetchSession,
    Topic,
    requested_partitions,
)
from urteil.broker.replication.fetch_target import FetchTarget
from urteil.broker.replication.nearest_replica import NearestReplica
from urteil.broker.replication.partition_read import (
    ISOLATIONS,
    READ_COMMITTED,
    FetchTerms,
    PartitionRead,
)
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.batches import (
    CorruptBatch,
    TooLarge,
    UnsupportedCompression,
    down_convert,
)
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, FetchResponse
from urteil.broker.wire.primitives import ZERO_UUID

BATCHES_FROM = 4
IDS_FROM = 13
STORAGE_ERROR_FROM = 6
ZSTD_FROM = 10
ANY_REPLICA_FROM = 11
EMPTY_BYTES = 18  # the size of a response without partitions
PARTITION_BYTES = 40  # about the size of a partition without its records


@handler(ApiKey.FETCH, 0, 17)
async def fetch(
    broker: BrokerParts, context: RequestContext, request: FetchRequest
) -> FetchResponse:
    """Read up to the reader's bound, waiting for min_bytes up to max_wait_ms.

    Within a session, to begin one, or without (KIP-227, `FetchManager.newContext`).
    """
    fetch_in_progress = _FetchInProgress(broker, context, request)
    if not LEAST_SESSION <= request.session_id <= MAX_SESSION:
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        broker.fetch_sessions.close(request.session_id)
        return await fetch_in_progress.in_full(
            begins_session=request.session_epoch == INITIAL_EPOCH
        )
    session = broker.fetch_sessions.find(
        request.session_id, request.session_epoch, uses_ids=fetch_in_progress.by_id
    )
    if isinstance(session, ErrorCode):
        return fetch_in_progress.without_session(session)
    fetch_in_progress.reject_zero_ids()
    session.update(request, fetch_in_progress.resolve)
    if len(session) == 0:
        broker.fetch_sessions.close(session.id)
        return await fetch_in_progress.in_full(begins_session=False)
    return await fetch_in_progress.in_session(session)


class _FetchInProgress:
    """One Fetch request in progress."""

    def __init__(self, broker: BrokerParts, context: RequestContext, request: FetchRequest) -> None:
        self.by_id = context.version >= IDS_FROM
        self._broker = broker
        self._context = context
        self._request = request
        self._terms = _terms(broker, context, request)

    def without_session(self, error: ErrorCode) -> FetchResponse:
        """The error of an unknown session; a throttled client receives only the throttle time."""
        if wait_ms := self._wait_ms([]):
            return FetchResponse(throttle_time_ms=wait_ms)
        return FetchResponse(error_code=error)

    async def in_full(self, *, begins_session: bool) -> FetchResponse:
        """All partitions that the request lists, and a session of them if there is room."""
        partitions = requested_partitions(self._request, by_id=self.by_id)
        requested = {key: partition async for key, partition in yield_items(partitions)}
        keys = list(requested)
        targets = [
            self.resolve(key[0], partition)
            async for key, partition in yield_items(requested.items())
        ]
        reads = await self._read(targets)
        if wait_ms := self._wait_ms(reads):
            return FetchResponse(throttle_time_ms=wait_ms)
        self._count_sent(targets, reads)
        session = None
        if begins_session:
            self.reject_zero_ids()
            session = self._broker.fetch_sessions.open(
                len(keys),
                self._broker.replicas.monotonic_ms(),
                is_privileged=self._terms.is_follower,
                uses_ids=self.by_id,
            )
        if session is not None:
            async for key, target, read in yield_items(zip(keys, targets, reads, strict=True)):
                session.add(key, target, read)
        topics = [topic for topic, _ in keys]
        return await self._answer(
            NO_SESSION if session is None else session.id,
            list(zip(topics, targets, reads, strict=True)),
        )

    async def in_session(self, session: FetchSession) -> FetchResponse:
        """What is new in the partitions of the session."""
        self._broker.fetch_sessions.touch(session, self._broker.replicas.monotonic_ms())
        next_epoch = session.advance()
        targets = session.fetch_targets(self.resolve)
        reads = await self._read(targets)
        if session.epoch != next_epoch:  # another request used the session meanwhile
            return FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id
            )
        if wait_ms := self._wait_ms(reads):
            return FetchResponse(throttle_time_ms=wait_ms, session_id=session.id)
        self._count_sent(targets, reads)
        return await self._answer(session.id, list(session.changed_partitions(reads)))

    def reject_zero_ids(self) -> None:
        """Reject topics without name and id: as in Apache Kafka, no session has them."""
        requested, forgotten = self._request.topics, self._request.forgotten_topics_data
        ids = [topic.topic_id for topic in requested if topic.partitions]
        ids += [topic.topic_id for topic in forgotten if topic.partitions]
        if self.by_id and ZERO_UUID in ids:
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)

    async def _read(self, fetch_targets: list[FetchTarget]) -> list[PartitionRead]:
        allowed = (
            fetch_targets
            if self._broker.authorizer is None
            else self._check_read_rights(fetch_targets)
        )
        # only a read checks the isolation level
        if self._request.isolation_level not in ISOLATIONS and any(
            fetch_target.error not in NOT_SERVED for fetch_target in allowed
        ):
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return await self._broker.replicas.fetch_reader.fetch(self._terms, allowed)

    def _wait_ms(self, reads: list[PartitionRead]) -> int:
        """The throttle time of a consumer by its quota; 0 without throttling."""
        if self._terms.is_follower or not self._broker.throttle.is_active:
            return 0
        size = EMPTY_BYTES + sum(read.size + PARTITION_BYTES for read in reads)
        return fetch_wait_ms(self._broker, self._context, size)

    def _count_sent(self, fetch_targets: list[FetchTarget], reads: list[PartitionRead]) -> None:
        if not self._terms.is_follower:
            self._broker.replicas.traffic.count_response(fetch_targets, reads)

    def _check_read_rights(self, fetch_targets: list[FetchTarget]) -> list[FetchTarget]:
        """The partitions, with an error for those that the client may not read now."""
        if self._terms.is_follower:
            if may_cluster(self._broker, self._context, Operation.CLUSTER_ACTION):
                return fetch_targets
            return [_unauthorized_target(fetch_target) for fetch_target in fetch_targets]
        names = [fetch_target.topic for fetch_target in fetch_targets if fetch_target.topic]
        allowed = allowed_names(
            self._broker, self._context, Operation.READ, ResourceType.TOPIC, names
        )
        return [
            fetch_target
            if not fetch_target.topic or fetch_target.topic in allowed
            else _unauthorized_target(fetch_target)
            for fetch_target in fetch_targets
        ]

    def resolve(
        self, topic: Topic, request: FetchRequest.FetchPartition, known_name: str = ""
    ) -> FetchTarget:
        """Find a partition on this broker. A session passes the name of a topic id
        (`known_name`), which it keeps after the topic's deletion."""
        replicas = self._broker.replicas
        if isinstance(topic, str):
            return replicas.fetch_target(topic, request)
        name = known_name or replicas.topic_name(topic)
        if not name:
            return FetchTarget("", None, request, ErrorCode.UNKNOWN_TOPIC_ID)
        target = replicas.fetch_target(name, request)
        if target.partition is not None and target.partition.topic_id != topic:
            return FetchTarget(name, None, request, ErrorCode.INCONSISTENT_TOPIC_ID)
        return target

    async def _answer(
        self, session_id: int, answers: Sequence[tuple[Topic, FetchTarget, PartitionRead]]
    ) -> FetchResponse:
        """The response; partitions that are not here come last, as in Kafka."""
        hints = FetchHints(self._broker, self._context)
        version = self._context.version
        responses: list[FetchResponse.FetchableTopicResponse] = []
        last: Topic | None = None
        partitions: list[FetchResponse.PartitionData] = []
        async for topic, target, read in yield_items(
            sorted(answers, key=lambda answer: answer[2].error in NOT_SERVED)
        ):
            if topic != last:
                last, partitions = topic, []
                place = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
                responses.append(
                    FetchResponse.FetchableTopicResponse(partitions=partitions, **place)
                )
            records: Any = read.records
            if (
                version < BATCHES_FROM
                and records
                and _version_error(target, version) is ErrorCode.NONE
            ):
                records = await self._for_old_client(records, target.request.fetch_offset)
            partitions.append(_partition(target, read, records, version, hints))
        return FetchResponse(
            session_id=session_id, responses=responses, node_endpoints=hints.nodes()
        )

    async def _for_old_client(
        self, records: Sequence[Any], from_offset: int
    ) -> list[bytes] | ErrorCode:
        """Batches as message sets of magic 0 (Fetch 0 and 1) or 1 (2 and 3)."""
        magic = 0 if self._context.version < 2 else 1

        def down_converted() -> list[bytes]:
            return [down_convert(b"".join(records), magic, from_offset=from_offset)]

        try:
            return await self._broker.offload.call(down_converted)
        except UnsupportedCompression:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        except TooLarge:
            return ErrorCode.UNSUPPORTED_VERSION
        except CorruptBatch:
            return ErrorCode.CORRUPT_MESSAGE


def _unauthorized_target(fetch_target: FetchTarget) -> FetchTarget:
    return FetchTarget(
        fetch_target.topic, None, fetch_target.request, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )


def _terms(broker: BrokerParts, context: RequestContext, request: FetchRequest) -> FetchTerms:
    version = context.version
    read_committed = request.isolation_level == READ_COMMITTED
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    replica_id = request.replica_state.replica_id if version >= 15 else request.replica_id
    if replica_id < 0:
        max_bytes = fetch_at_once(broker, context, max_bytes)
    return FetchTerms(
        replica_id=replica_id,
        replica_epoch=request.replica_state.replica_epoch,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        read_committed=read_committed,
        hard_limit=version <= 2,
        in_session=request.session_epoch > INITIAL_EPOCH,
        lend=version >= BATCHES_FROM and not read_committed,  # those batches are parsed
        any_replica=replica_id < 0 and version >= ANY_REPLICA_FROM,
        nearest=_nearest_replica(broker, context, request) if replica_id < 0 else None,
    )


def _nearest_replica(
    broker: BrokerParts, context: RequestContext, request: FetchRequest
) -> NearestReplica | None:
    if not request.rack_id or broker.config.replica_selector_class != RACK_AWARE:
        return None
    return NearestReplica(broker.metadata, request.rack_id, context.listener)


def _partition(
    fetch_target: FetchTarget, read: PartitionRead, records: Any, version: int, hints: FetchHints
) -> FetchResponse.PartitionData:
    """`records` are in the format of the version, or the error of their conversion."""
    index = fetch_target.request.partition
    refused = records if isinstance(records, ErrorCode) else _version_error(fetch_target, version)
    if refused is not ErrorCode.NONE:
        return FetchResponse.PartitionData(
            partition_index=index, error_code=refused, high_watermark=-1, aborted_transactions=()
        )
    if read.error is not ErrorCode.NONE:
        error = read.error
        if error is ErrorCode.KAFKA_STORAGE_ERROR and version < STORAGE_ERROR_FROM:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER  # an error after which such clients retry
        return _failed_partition(fetch_target, error, hints)
    return FetchResponse.PartitionData(
        partition_index=index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        diverging_epoch=FetchResponse.EpochEndOffset(
            epoch=read.diverging_epoch, end_offset=read.diverging_end_offset
        ),
        aborted_transactions=_aborted_transactions(read),
        preferred_read_replica=read.preferred_replica,
        records=records or b"",
    )


def _version_error(fetch_target: FetchTarget, version: int) -> ErrorCode:
    """The error if a topic's settings exclude readers of this version."""
    if version >= ZSTD_FROM or fetch_target.partition is None:
        return ErrorCode.NONE
    config = fetch_target.partition.log.config
    if config.compression_type == "zstd":
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if version < BATCHES_FROM and not config.message_downconversion_enable:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def _aborted_transactions(read: PartitionRead) -> list[FetchResponse.AbortedTransaction] | None:
    if read.aborted is None:
        return None
    return [
        FetchResponse.AbortedTransaction(
            producer_id=aborted.producer_id, first_offset=aborted.first_offset
        )
        for aborted in read.aborted
    ]


def _failed_partition(
    fetch_target: FetchTarget, error: ErrorCode, hints: FetchHints
) -> FetchResponse.PartitionData:
    """The result of a failed partition. Aborted transactions are null if the partition was here,
    even if it was deleted during the wait."""
    index = fetch_target.request.partition
    unseen = fetch_target.partition is None or error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return FetchResponse.PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=-1,
        current_leader=hints.leader(fetch_target.topic, index, error),
        aborted_transactions=() if error in NOT_SERVED and unseen else None,
        records=b"",
    )
