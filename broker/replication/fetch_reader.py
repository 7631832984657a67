"""Reads for a fetch request: all its partitions in order, after a wait for enough bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from urteil.broker.base.offload import PACE, yield_items
from urteil.broker.base.purgatory import DelayedOperation, Purgatory
from urteil.broker.replication.fetch_target import FetchTarget
from urteil.broker.replication.partition import Partition
from urteil.broker.replication.partition_read import (
    IDLE,
    FetchTerms,
    PartitionRead,
    fetch_error,
    read_partition,
    upper_bound,
)
from urteil.broker.replication.replication_throttle import Throttle, is_listed
from urteil.broker.wire.errors import ErrorCode

NOT_SERVED = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
"""Errors of a fetch that waits for no records: the partition is unknown or forbidden."""


class FetchReader:
    """Reads batches of hosted partitions for consumers and followers.

    Fetches that wait are in `purgatory`. `throttle` limits followers of throttled replicas.
    """

    def __init__(
        self,
        broker_id: int,
        throttle: Throttle,
        purgatory: Purgatory,
        monotonic_ms: Callable[[], float],
    ) -> None:
        self._broker_id = broker_id
        self._throttle = throttle
        self._purgatory = purgatory
        self._monotonic_ms = monotonic_ms

    async def fetch(self, terms: FetchTerms, targets: Sequence[FetchTarget]) -> list[PartitionRead]:
        """Read all targets in order; wait up to `max_wait_ms` for `min_bytes` unless one has an
        error.

        `max_bytes` is spent in order. The first batch is returned complete whatever its size, so
        that a reader always makes progress.
        """
        reads = await self._read_paced(terms, targets, note=True)
        if terms.max_wait_ms > 0 and not _suffices(targets, reads, terms.min_bytes):
            await self._wait(terms, targets)
            reads = await self._read_paced(terms, targets)
        if terms.is_follower:
            self._record(targets, reads)
        return reads

    async def _wait(self, terms: FetchTerms, targets: Sequence[FetchTarget]) -> None:
        hosted = [target.partition for target in targets if target.partition is not None]
        if terms.is_follower:
            watched = [partition.on_appended for partition in hosted]
        else:
            watched = [partition.on_committed for partition in hosted]
        condition = self._condition(terms, targets)
        await DelayedOperation(condition, lambda: True, self._purgatory).wait(
            watched, terms.max_wait_ms
        )

    def _condition(
        self, terms: FetchTerms, targets: Sequence[FetchTarget]
    ) -> Callable[[], bool | None]:
        """The condition that ends the wait: enough bytes, or a role change that is an error."""
        roles = [
            (target, target.partition, target.partition.leader_epoch, target.partition.is_leader)
            for target in targets
            if target.partition is not None
        ]

        sizes = replace(terms, lend=True)  # only sizes matter: the bytes stay in the files

        def is_satisfied() -> bool | None:
            for target, partition, epoch, is_leader in roles:
                changed = partition.leader_epoch != epoch or partition.is_leader != is_leader
                if partition.is_retired or (
                    changed and fetch_error(partition, target.request, terms)
                ):
                    return True
            return self._has_bytes(sizes, targets) or None

        return is_satisfied

    def _has_bytes(self, terms: FetchTerms, targets: Sequence[FetchTarget]) -> bool:
        if terms.min_bytes <= 1:
            return any(
                target.partition is not None
                and upper_bound(target.partition, terms) > target.request.fetch_offset
                and not self._holds_back(target.partition, terms)
                for target in targets
            )
        return _suffices(targets, self._read_all(terms, targets), terms.min_bytes)

    async def _read_paced(
        self, terms: FetchTerms, targets: Sequence[FetchTarget], *, note: bool = False
    ) -> list[PartitionRead]:
        """Read all targets; other requests run between many of them."""
        if len(targets) <= PACE:
            return self._read_all(terms, targets, note=note)
        return [read async for read in yield_items(self._reads(terms, targets, note=note))]

    def _read_all(
        self, terms: FetchTerms, targets: Sequence[FetchTarget], *, note: bool = False
    ) -> list[PartitionRead]:
        return list(self._reads(terms, targets, note=note))

    def _reads(
        self, terms: FetchTerms, targets: Sequence[FetchTarget], *, note: bool
    ) -> Iterator[PartitionRead]:
        """With `note` a follower's fetch updates its state, once for each request."""
        now_ms = self._monotonic_ms()
        bytes_left, min_one = terms.max_bytes, not terms.hard_limit
        for target in targets:
            partition = target.partition
            if partition is None:
                yield PartitionRead(error=target.error)
                continue
            if (
                target.settled_epoch == partition.leader_epoch
                and partition.is_leader
                and partition.is_idle_fetch(
                    terms.replica_id, target.request.fetch_offset, now_ms, note=note
                )
            ):
                yield IDLE
                continue
            read = self._read(
                partition, target, terms, bytes_left, now_ms, min_one=min_one, note=note
            )
            if read.size:
                min_one = False
                bytes_left = max(bytes_left - read.size, 0)
            yield read

    # -- throttled followers --------------------------------------------------------------------

    def _holds_back(self, partition: Partition, terms: FetchTerms) -> bool:
        """Whether a follower gets no records now: its replica is throttled, the quota is exceeded,
        and it is not in the ISR, which it must not leave because of the throttle."""
        return (
            terms.is_follower
            and self._is_throttled(partition)
            and terms.replica_id not in partition.isr.committed
            and self._throttle.is_exceeded
        )

    def _is_throttled(self, partition: Partition) -> bool:
        replicas = partition.log.config.leader_replication_throttled_replicas
        return bool(replicas) and is_listed(replicas, partition.partition, self._broker_id)

    def _record(self, targets: Sequence[FetchTarget], reads: Sequence[PartitionRead]) -> None:
        for target, read in zip(targets, reads, strict=True):
            if read.size and target.partition is not None and self._is_throttled(target.partition):
                self._throttle.record(read.size)

    def _read(
        self,
        partition: Partition,
        target: FetchTarget,
        terms: FetchTerms,
        max_bytes: int,
        now_ms: float,
        *,
        min_one: bool,
        note: bool,
    ) -> PartitionRead:
        if self._holds_back(partition, terms):
            max_bytes, min_one = 0, False
        try:
            read = read_partition(
                partition, target.request, terms, max_bytes, now_ms, min_one=min_one, note=note
            )
        except OSError as failure:
            partition.log.handle_read_error(failure)
            return PartitionRead(error=ErrorCode.KAFKA_STORAGE_ERROR)
        if terms.is_follower and terms.in_session:
            settled = read.error is ErrorCode.NONE and not read.diverges
            target.settled_epoch = target.request.current_leader_epoch if settled else -1
        return read


def _suffices(
    targets: Sequence[FetchTarget], reads: Sequence[PartitionRead], min_bytes: int
) -> bool:
    """Whether the response can be sent now: enough bytes, an error, a divergence or a preferred
    replica. Partitions that are not served neither end the wait nor prolong it."""
    size = 0
    is_none_served = True
    for target, read in zip(targets, reads, strict=True):
        if target.partition is None and read.error in NOT_SERVED:
            continue
        is_none_served = False
        if read.error is not ErrorCode.NONE or read.diverges or read.more:
            return True
        if read.preferred_replica >= 0:
            return True
        size += read.size
    return is_none_served or size >= min_bytes
