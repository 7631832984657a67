"""The read of one partition for a Fetch: fencing, divergence, bounds, records."""

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
    """The reader and the limits of a fetch. `replica_id` is negative for consumers."""

    replica_id: int
    replica_epoch: int = -1  # the follower's broker epoch (KIP-903)
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool = False
    hard_limit: bool = False  # versions up to 2: no batch beyond the limit
    in_session: bool = False  # unchanged partitions need no new read
    lend: bool = False  # larger reads stay in the file; aborted transactions are not listed
    any_replica: bool = False  # consumers from version 11 on read from any replica (KIP-392)
    nearest: NearestReplica | None = None  # selects a replica in the consumer's rack

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """The result of a fetch for one partition; after an error all offsets are -1, as in Kafka."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: int = -1
    diverging_end_offset: int = -1
    records: Sequence[Any] = ()
    size: int = 0
    more: bool = False  # later segments have records: the fetch must not wait
    preferred_replica: int = -1
    aborted: Sequence[AbortedTxn] | None = None  # None if not requested

    @property
    def diverges(self) -> bool:
        return self.diverging_end_offset >= 0


_UNKNOWN_PARTITION = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

# A follower at the log's end in a session: no records and nothing to check.
IDLE = PartitionRead()


def upper_bound(partition: Partition, terms: FetchTerms) -> int:
    """The offset below which this reader may read."""
    if terms.is_follower:
        return partition.log.log_end_offset
    if terms.read_committed:
        return partition.log.last_stable_offset
    return partition.log.high_watermark


def read_partition(
    partition: Partition | None,
    fetched: FetchRequest.FetchPartition,
    terms: FetchTerms,
    max_bytes: int,
    now_ms: float,
    *,
    min_one: bool,
    note: bool = True,
) -> PartitionRead:
    """Read for one partition (KIP-101, 320, 392, 595). With `note` a follower's fetch updates its
    state; set it once for each request."""
    if partition is None or partition.is_retired:
        return PartitionRead(error=partition.retirement_error if partition else _UNKNOWN_PARTITION)
    if terms.nearest is not None:
        preferred = terms.nearest.select(partition, fetched.fetch_offset)
        if preferred >= 0:
            return _redirect(partition, fetched, preferred)
    error = fetch_error(partition, fetched, terms)
    if not partition.is_leader and fetched.fetch_offset > partition.log.log_end_offset:
        # A lagging replica must not make a consumer reset its offset: the leader may have it.
        # Apache
        # Kafka answers OFFSET_OUT_OF_RANGE, after which clients also retry with the leader.
        error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error is not ErrorCode.NONE:
        return PartitionRead(error=error)
    diverging = _divergence(partition, fetched)
    if diverging is not None:
        return diverging
    return _read(partition, fetched, terms, max_bytes, now_ms, min_one=min_one, note=note)


def fetch_error(
    partition: Partition, fetched: FetchRequest.FetchPartition, terms: FetchTerms
) -> ErrorCode:
    """NONE, or why the reader may not fetch here: the role, the epoch, or not a replica."""
    if partition.is_retired:
        return partition.retirement_error
    check = partition.check_epoch if terms.any_replica else partition.check_leader
    error = check(fetched.current_leader_epoch)
    if error is ErrorCode.NONE and terms.is_follower:
        return _follower_error(partition, fetched, terms)
    return error


def _follower_error(
    partition: Partition, fetched: FetchRequest.FetchPartition, terms: FetchTerms
) -> ErrorCode:
    """Reject a late fetch of an earlier session of the follower's broker, which may have lost its
    records since (KIP-903; Apache Kafka checks this in KRaft mode only)."""
    follower = partition.followers.get(terms.replica_id)
    if follower is None:
        has_epoch = fetched.current_leader_epoch >= 0
        return ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
    is_outdated = 0 <= terms.replica_epoch < follower.broker_epoch
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_outdated else ErrorCode.NONE


def _redirect(
    partition: Partition, fetched: FetchRequest.FetchPartition, preferred: int
) -> PartitionRead:
    error = partition.check_epoch(fetched.current_leader_epoch)
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
    fetched: FetchRequest.FetchPartition,
    terms: FetchTerms,
    max_bytes: int,
    now_ms: float,
    *,
    min_one: bool,
    note: bool,
) -> PartitionRead:
    log = partition.log
    # Watermarks as of before the read: later ones could cover records that this read lacks.
    high_watermark, stable = log.high_watermark, log.last_stable_offset
    upto = upper_bound(partition, terms)
    limit = min(max_bytes, fetched.partition_max_bytes)
    result = log.read(
        fetched.fetch_offset, max(limit, 0), upto=upto, min_one=min_one, lend=terms.lend
    )
    error = result.error
    if limit < 0 and fetched.fetch_offset < upto:  # the limit matters only if there are records
        error = error or ErrorCode.UNKNOWN_SERVER_ERROR
    if error is not ErrorCode.NONE:
        return PartitionRead(error=error)
    if terms.is_follower and note:
        partition.record_follower_fetch(
            terms.replica_id,
            fetched.fetch_offset,
            fetched.log_start_offset,
            now_ms,
            terms.replica_epoch,
        )
    aborted: Sequence[AbortedTxn] | None = None
    if terms.read_committed and not terms.is_follower and not terms.lend:
        aborted = _aborted_transactions(log, fetched.fetch_offset, result)
    return PartitionRead(
        high_watermark=high_watermark,
        last_stable_offset=stable,
        log_start_offset=log.log_start_offset,
        records=result.records,
        size=result.size,
        more=result.more,
        aborted=aborted,
    )


def _aborted_transactions(
    log: PartitionLog, fetch_offset: int, result: ReadResult
) -> Sequence[AbortedTxn]:
    return log.aborted_transactions(fetch_offset, result.next_offset) if result.size else ()


def _divergence(partition: Partition, fetched: FetchRequest.FetchPartition) -> PartitionRead | None:
    """The end of the last common epoch if the reader's log is not a prefix of ours, else None."""
    if fetched.last_fetched_epoch < 0:
        return None
    log = partition.log
    epoch, end_offset = log.epoch_end_offset(fetched.last_fetched_epoch)
    if end_offset < 0 or epoch < 0 or fetched.fetch_offset < log.log_start_offset:
        return PartitionRead(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= fetched.last_fetched_epoch and end_offset >= fetched.fetch_offset:
        return None
    return PartitionRead(
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=epoch,
        diverging_end_offset=end_offset,
    )
