"""Fetches of consumers and followers, and fetch sessions."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace

LEADER = -1


@mutant(
    about="a leader serves consumers records that its followers do not have yet",
    models="reads bounded by the log end instead of the high watermark",
    scenario="cut-crash",
    guarantee="vanished_read",
)
def serve_reads_beyond_hw(mark: Mark) -> None:
    """Gives consumers the limit of a follower."""

    def make(original: Function) -> Function:
        def upper_bound(partition: Any, terms: Any) -> int:
            allowed, end = int(original(partition, terms)), int(partition.log.log_end_offset)
            if allowed < end:
                mark.hit()
            return end

        return upper_bound

    for module in ("partition_read", "fetch_reader"):
        replace(f"urteil.broker.replication.{module}:upper_bound", make)


@mutant(
    about="a fetch from the base offset of any segment but the first skips one batch",
    models="a reader that loses its place between two segment files",
    scenario="indexes",
    guarantee="poll_skip",
)
def fetch_skips_batch_at_segment_roll(mark: Mark) -> None:
    """Moves consumer fetches from a segment's base offset past its first batch."""

    def make(original: Function) -> Function:
        def read(partition: Any, target: Any, terms: Any, *rest: Any, **named: Any) -> Any:
            import dataclasses

            at, log = target.fetch_offset, partition.log
            rolled = {segment.base_offset for segment in list(log.segments)[1:]}
            if not terms.is_follower and at in rolled and at + 1 < log.high_watermark:
                mark.hit()
                target = dataclasses.replace(target, fetch_offset=at + 1)
            return original(partition, target, terms, *rest, **named)

        return read

    replace("urteil.broker.replication.partition_read:_read", make)


@mutant(
    about="a fetch is answered whatever the leader epoch of the follower's last record",
    models="before KIP-320: fetches without leader epochs, so that diverging logs stay undetected",
    scenario="cut-crash",
    guarantee="replica_divergence",
)
def epoch_not_checked_on_fetch(mark: Mark) -> None:
    """Reports no log as diverging."""

    def make(original: Function) -> Function:
        def divergence(partition: Any, target: Any) -> None:
            if original(partition, target) is not None:
                mark.hit()

        return divergence

    replace("urteil.broker.replication.partition_read:_divergence", make)


@mutant(
    about="a follower serves consumers all records of its log, committed or not",
    models="KIP-392 without the follower's own high watermark",
    scenario="nearest-replica",
    guarantee="vanished_read",
    unsimulated="no consumer reads from followers",
)
def follower_serves_uncommitted(mark: Mark) -> None:
    """Uses a follower's log end offset as its high watermark for consumers."""

    def make(original: Function) -> Function:
        def upper_bound(partition: Any, terms: Any) -> int:
            result: int = original(partition, terms)
            end: int = partition.log.log_end_offset
            if partition.is_leader or terms.is_follower or result == end:
                return result
            mark.hit()
            return end

        return upper_bound

    replace("urteil.broker.replication.partition_read:upper_bound", make)
    replace("urteil.broker.replication.fetch_reader:upper_bound", make)


@mutant(
    about="a fetch from above the high watermark is answered with OFFSET_OUT_OF_RANGE",
    models="a range check against the high watermark instead of the log end",
    scenario="epoch-truncation",
    guarantee="nonmonotonic_poll",
    unsimulated="no reader is ahead of a new leader",
)
def fetch_above_watermark_rejected(mark: Mark) -> None:
    """Uses the high watermark as the upper bound of valid fetch offsets."""
    from urteil.broker.replication.partition_read import PartitionRead
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def read(partition: Any, target: Any, terms: Any, *rest: Any, **named: Any) -> Any:
            beyond = target.fetch_offset > partition.log.high_watermark
            if beyond and not terms.is_follower:
                mark.hit()
                return PartitionRead(error=ErrorCode.OFFSET_OUT_OF_RANGE)
            return original(partition, target, terms, *rest, **named)

        return read

    replace("urteil.broker.replication.partition_read:_read", make)


@mutant(
    about="a consumer's fetch session ignores partitions that are added later",
    models="KIP-227: a fetch session that is not updated",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def session_ignores_new_partitions(mark: Mark) -> None:
    """Removes partitions from a consumer's session that its first request lacked."""

    def make(original: Function) -> Function:
        def update(session: Any, request: Any, resolve: Any) -> None:
            known = set(session._cached)
            original(session, request, resolve)
            new = set(session._cached) - known
            if new and not session.is_privileged:
                mark.hit()
                for key in new:
                    del session._cached[key]

        return update

    replace("urteil.broker.replication.fetch_sessions:FetchSession.update", make)


@mutant(
    about="a fetch session reports a new high watermark only together with records",
    models="KIP-227: sessions without updates of the high watermark",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def session_omits_watermarks(mark: Mark) -> None:
    """Omits partitions whose high watermark alone has changed."""

    def make(original: Function) -> Function:
        def unchanged(cached: Any) -> Any:
            result = original(cached)
            if result is not None:
                mark.hit()
            return None

        return unchanged

    replace("urteil.broker.replication.fetch_sessions:_Cached.idle_read", make)


@mutant(
    about="read_uncommitted consumers get no records above the first open transaction",
    models="KIP-98: isolation.level=read_uncommitted served as read_committed",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def read_uncommitted_bounded_by_lso(mark: Mark) -> None:
    """Bounds all consumers by the last stable offset."""

    def make(original: Function) -> Function:
        def bound(partition: Any, terms: Any) -> int:
            right: int = original(partition, terms)
            if terms.is_follower or partition.log.last_stable_offset >= right:
                return right
            mark.hit()
            return int(partition.log.last_stable_offset)

        return bound

    replace("urteil.broker.replication.partition_read:upper_bound", make)


@mutant(
    about="requests of a fetch session may be lost, repeated or reordered",
    models="KIP-227: session epochs that are not checked",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def session_epoch_unchecked(mark: Mark) -> None:
    """Counts every session epoch as the expected one."""

    def make(original: Function) -> Function:
        def find(sessions: Any, session_id: int, epoch: int, *, uses_ids: bool) -> Any:
            session = sessions._sessions.get(session_id)
            if session is None or session.epoch == epoch:
                return original(sessions, session_id, epoch, uses_ids=uses_ids)
            mark.hit()
            return session

        return find

    replace("urteil.broker.replication.fetch_sessions:FetchSessions.find", make)


@mutant(
    about="consumers fetch from the leader, whatever replica.selector.class says",
    models="KIP-392: a RackAwareReplicaSelector that selects no replica",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def racks_ignored(mark: Mark) -> None:
    """Selects the leader as the replica for every consumer."""

    def make(original: Function) -> Function:
        def select(nearest: Any, partition: Any, fetch_offset: int) -> int:
            if original(nearest, partition, fetch_offset) != LEADER:
                mark.hit()
            return LEADER

        return select

    replace("urteil.broker.replication.nearest_replica:NearestReplica.select", make)


@mutant(
    about="readers of committed records learn only of the aborted transactions in the segment in "
    "which their fetch begins",
    models="a lookup of aborted transactions that ends with its first segment",
    scenario="transactions-held-open",
    guarantee="aborted_read",
)
def aborted_in_first_segment_only(mark: Mark) -> None:
    """Removes aborted transactions that later segments' indexes have from a fetch's answer."""

    def make(original: Function) -> Function:
        def aborted_transactions(log: Any, fetch_offset: int, result: Any) -> Any:
            transactions = original(log, fetch_offset, result)
            segment = log.segments[max(log.segments.floor_index(fetch_offset), 0)]
            listed = [txn for txn in transactions if txn in segment.txn_index.entries]
            if len(listed) < len(transactions):
                mark.hit()
            return listed

        return aborted_transactions

    replace("urteil.broker.replication.partition_read:_aborted_transactions", make)


@mutant(
    about="one fetch of a consumer in ten is answered only when its wait is over",
    models="a delayed fetch that is not watched under every partition of its request",
    scenario="compaction-calm",
    guarantee="slow_fetch",
)
def tenth_fetch_waits_out(mark: Mark) -> None:
    """Lets no append complete every tenth fetch that waits."""
    waiting = 0

    def make(original: Function) -> Function:
        def condition(reader: Any, terms: Any, targets: Any) -> Any:
            nonlocal waiting
            waiting += not terms.is_follower
            if terms.is_follower or waiting % 10:
                return original(reader, terms, targets)
            mark.hit()
            return lambda: None

        return condition

    replace("urteil.broker.replication.fetch_reader:FetchReader._condition", make)
