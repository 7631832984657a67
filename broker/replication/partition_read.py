"""One partition's part of a Fetch: fencing, divergence, bounds, records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from urteil.broker.log.log_results import ReadResult
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.replication.nearest_replica import NearestReplica
from urteil.broker.replication.partition import Partition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest

READ_COMMITTED = 1
ISOLATIONS = (0, READ_COMMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTerms:
    """Who fetches and how much. `replica_id` is below 0 for consumers."""

    replica_id: int
    replica_epoch: int = -1  # the follower's broker epoch (KIP-903)
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool = False
    hard_limit: bool = False  # versions up to 2: not even one batch beyond the limit
    in_session: bool = False  # what did not change need not be read again
    lend: bool = False  # larger reads may stay in the file, and nobody asks for what is aborted
    any_replica: bool = False  # consumers from version 11 on may read from followers (KIP-392)
    nearest: NearestReplica | None = None  # sends consumers to a replica of their rack

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """What one partition has for a fetch; -1 where Kafka answers -1 (every error)."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: int = -1
    diverging_end_offset: int = -1
    records: Sequence[Any] = ()
    size: int = 0
    more: bool = False  # in later segments: nobody waits for bytes that are there to be asked for
    preferred_replica: int = -1
    aborted: Sequence[AbortedTxn] | None = None  # None if not asked for

    @property
    def diverges(self) -> bool:
        return self.diverging_end_offset >= 0


_NOWHERE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

# A follower at the log's end in a session: nothing new, and nothing to check again.
IDLE = PartitionRead()


def upper_bound(partition: Partition, terms: FetchTerms) -> int:
    """The first offset that this reader may not see."""
    if terms.is_follower:
        return partition.log.log_end_offset
    if terms.read_committed:
        return partition.log.last_stable_offset
    return partition.log.high_watermark


def read_partition(
    partition: Partition | None,
    wanted: FetchRequest.FetchPartition,
    terms: FetchTerms,
    max_bytes: int,
    now_ms: float,
    *,
    min_one: bool,
    note: bool = True,
) -> PartitionRead:
    """Read for one partition (KIP-101, 320, 392, 595). A follower's fetch moves its state, too,
    if it is to be noted: once a request."""
    if partition is None or partition.is_retired:
        return PartitionRead(error=partition.gone if partition else _NOWHERE)
    if terms.nearest is not None:
        preferred = terms.nearest.select(partition, wanted.fetch_offset)
        if preferred >= 0:
            return _elsewhere(partition, wanted, preferred)
    error = fetch_error(partition, wanted, terms)
    if not partition.is_leader and wanted.fetch_offset > partition.log.log_end_offset:
        # A replica that lags must not make a consumer reset its offset: the leader may have it.
        # Apache Kafka answers OFFSET_OUT_OF_RANGE; after this error clients ask the leader, too.
        error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error is not ErrorCode.NONE:
        return PartitionRead(error=error)
    diverging = _divergence(partition, wanted)
    if diverging is not None:
        return diverging
    return _read(partition, wanted, terms, max_bytes, now_ms, min_one=min_one, note=note)


def fetch_error(
    partition: Partition, wanted: FetchRequest.FetchPartition, terms: FetchTerms
) -> ErrorCode:
    """NONE, or why they may not fetch it here: its role, its epoch, or they are no replica."""
    if partition.is_retired:
        return partition.gone
    check = partition.check_epoch if terms.any_replica else partition.check_leader
    error = check(wanted.current_leader_epoch)
    if error is ErrorCode.NONE and terms.is_follower:
        return _follower_error(partition, wanted, terms)
    return error


def _follower_error(
    partition: Partition, wanted: FetchRequest.FetchPartition, terms: FetchTerms
) -> ErrorCode:
    """What an earlier life of the follower had, this one may have lost: a fetch of it that comes
    late, from a link that stood still, says nothing (KIP-903; Apache Kafka asks in KRaft alone)."""
    follower = partition.followers.get(terms.replica_id)
    if follower is None:
        known = wanted.current_leader_epoch >= 0
        return ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER
    is_over = 0 <= terms.replica_epoch < follower.broker_epoch
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_over else ErrorCode.NONE


def _elsewhere(
    partition: Partition, wanted: FetchRequest.FetchPartition, preferred: int
) -> PartitionRead:
    error = partition.check_epoch(wanted.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return PartitionRead(error=error)
    return PartitionRead(
        high_watermark=partition.log.high_watermark,
        last_stable_offset=partition.log.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        preferred_replica=preferred,
    )


def _read(
    partition: Partition,
    wanted: FetchRequest.FetchPartition,
    terms: FetchTerms,
    max_bytes: int,
    now_ms: float,
    *,
    min_one: bool,
    note: bool,
) -> PartitionRead:
    log = partition.log
    # The watermarks are taken before the read: later ones could cover records not read here.
    high_watermark, stable = log.high_watermark, log.last_stable_offset
    upto = upper_bound(partition, terms)
    limit = min(max_bytes, wanted.partition_max_bytes)
    result = log.read(
        wanted.fetch_offset, max(limit, 0), upto=upto, min_one=min_one, lend=terms.lend
    )
    error = result.error
    if limit < 0 and wanted.fetch_offset < upto:  # where there is nothing to read, no limit counts
        error = error or ErrorCode.UNKNOWN_SERVER_ERROR
    if error is not ErrorCode.NONE:
        return PartitionRead(error=error)
    if terms.is_follower and note:
        partition.record_follower_fetch(
            terms.replica_id,
            wanted.fetch_offset,
            wanted.log_start_offset,
            now_ms,
            terms.replica_epoch,
        )
    aborted: Sequence[AbortedTxn] | None = None
    if terms.read_committed and not terms.is_follower and not terms.lend:
        aborted = _aborted(log, wanted.fetch_offset, result)
    return PartitionRead(
        high_watermark=high_watermark,
        last_stable_offset=stable,
        log_start_offset=log.log_start_offset,
        records=result.records,
        size=result.size,
        more=result.more,
        aborted=aborted,
    )


def _aborted(log: PartitionLog, fetch_offset: int, result: ReadResult) -> Sequence[AbortedTxn]:
    return log.aborted_transactions(fetch_offset, result.next_offset) if result.size else ()


def _divergence(partition: Partition, wanted: FetchRequest.FetchPartition) -> PartitionRead | None:
    """The end of the last common epoch, when the reader's log is not a prefix of ours."""
    if wanted.last_fetched_epoch < 0:
        return None
    log = partition.log
    epoch, end_offset = log.epoch_end_offset(wanted.last_fetched_epoch)
    if end_offset < 0 or epoch < 0 or wanted.fetch_offset < log.log_start_offset:
        return PartitionRead(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
        return None
    return PartitionRead(
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=epoch,
        diverging_end_offset=end_offset,
    )
