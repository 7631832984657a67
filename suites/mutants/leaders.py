"""Partitions as leader: high watermark, ISR, acknowledgement."""

from __future__ import annotations

import asyncio
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import BANDWIDTH, NOT_FOUND_BY_THREE

PARTITION = "urteil.broker.replication.partition:Partition"
BEFORE = 100


@mutant(
    about="acks=all is answered at the append, before any follower has the records",
    models="acks=all treated as acks=1",
    scenario="cut-crash",
    guarantee="lost_write",
)
def ack_before_replication(mark: Mark) -> None:
    """Counts every required offset as replicated."""

    def make(original: Function) -> Function:
        def produce_outcome(partition: Any, required_offset: int) -> Any:
            result = original(partition, required_offset)
            if result is not None:
                return result
            mark.hit()
            return original(partition, partition.log.high_watermark)

        return produce_outcome

    replace("urteil.broker.replication.partition:Partition.acknowledgement", make)


@mutant(
    about="one produce request in ten that waits for followers is looked at again after a second",
    models="a lost wake-up: the high watermark passed before the request was watched",
    scenario="compaction-calm",
    guarantee="slow_acknowledgement",
)
def tenth_send_waits_out(mark: Mark) -> None:
    """Lets no fetch of a follower complete every tenth produce request for a second."""
    waiting = 0

    def make(original: Function) -> Function:
        async def wait(acknowledgement: Any, timeout_ms: int) -> None:
            nonlocal waiting
            waiting += 1
            if waiting % 10 == 0:
                mark.hit()
                await asyncio.sleep(1)
            await original(acknowledgement, timeout_ms)

        return wait

    replace("urteil.broker.replication.acknowledgement:Acknowledgement.wait", make)


@mutant(
    about="acks=all is acknowledged by a leader whose ISR is below min.insync.replicas",
    models="min.insync.replicas not enforced",
    scenario="min-isr",
    guarantee="ack_below_min_isr",
)
def ack_ignores_min_isr(mark: Mark) -> None:
    """Reports no partition as below min.insync.replicas."""

    def make(original: Any) -> Any:
        def is_under_min_isr(partition: Any) -> bool:
            if original.fget(partition):
                mark.hit()
            return False

        return property(is_under_min_isr)

    replace("urteil.broker.replication.partition:Partition.is_under_min_isr", make)


@mutant(
    about="the high watermark counts records that were sent to followers, before they have them",
    models="a high watermark advanced by the answer instead of the next fetch offset",
    scenario="last-follower",
    guarantee="lost_write",
)
def hw_before_isr_ack(mark: Mark) -> None:
    """Counts each follower with a pending fetch as having the leader's complete log."""

    def count_as_sent(partition: Any, now_ms: float) -> None:
        end = partition.log.log_end_offset
        for follower in partition.followers.values():
            waits = follower.end_offset == follower.last_fetch_leader_end
            if waits and 0 <= follower.end_offset < end:
                mark.hit()
                follower.end_offset = end
        if partition._advance_high_watermark(now_ms):
            partition.on_committed.notify()

    def make_append(original: Function) -> Function:
        def append(
            partition: Any, data: Any, acks: int, wall_ms: int, now_ms: float, **kwargs: Any
        ) -> Any:
            result = original(partition, data, acks, wall_ms, now_ms, **kwargs)
            if partition.is_leader:
                count_as_sent(partition, now_ms)
            return result

        return append

    def make_fetched(original: Function) -> Function:
        def record_follower_fetch(
            partition: Any,
            broker_id: int,
            fetch_offset: int,
            start_offset: int,
            now_ms: float,
            broker_epoch: int = -1,
        ) -> None:
            original(partition, broker_id, fetch_offset, start_offset, now_ms, broker_epoch)
            follower = partition.followers[broker_id]
            end = partition.log.log_end_offset
            if follower.end_offset < end:
                mark.hit()
                follower.end_offset = end
            if partition._advance_high_watermark(now_ms):
                partition.on_committed.notify()

        return record_follower_fetch

    replace(f"{PARTITION}.append", make_append)
    replace(f"{PARTITION}.record_follower_fetch", make_fetched)


@mutant(
    about="a new leader forgets the sequences of idempotent producers and appends a retry again",
    models="Redpanda #3039",
    scenario="slow-crash",
    guarantee="duplicate",
)
def dedup_state_lost_on_leader_change(mark: Mark) -> None:
    """Clears the producer state of a log when its broker becomes leader."""

    def make(original: Function) -> Function:
        def become_leader(partition: Any, state: Any, now_ms: float) -> bool:
            is_new = bool(original(partition, state, now_ms))
            if is_new:
                forget(partition.log, mark)
            return is_new

        return become_leader

    def forget(log: Any, mark: Mark) -> None:
        producers = log.producers
        if producers.entries:
            mark.hit()
            producers.reset(log.log_end_offset)

    replace("urteil.broker.replication.partition:Partition.become_leader", make)


@mutant(
    about="a leader proposes every ISR with the partition epoch with which it became leader",
    models="KAFKA-2729: Cached zkVersion not equal to that in zookeeper, skip updating ISR",
    scenario="follower-crash",
    guarantee="slow_recovery",
)
def cached_zk_version_forever(mark: Mark) -> None:
    """Keeps a leader's first partition epoch despite AlterPartition answers and LeaderAndIsr."""

    def keep(partition: Any, known: int) -> None:
        if partition.partition_epoch != known:
            mark.hit()
            partition.partition_epoch = known

    def make_altered(original: Function) -> Function:
        def apply_altered_isr(
            partition: Any, leader_epoch: int, partition_epoch: int, isr: Any, now_ms: float
        ) -> None:
            known = partition.partition_epoch
            original(partition, leader_epoch, partition_epoch, isr, now_ms)
            keep(partition, known)

        return apply_altered_isr

    def make_become_leader(original: Function) -> Function:
        def become_leader(partition: Any, state: Any, now_ms: float) -> Any:
            led, known = partition.is_leader, partition.partition_epoch
            is_new = original(partition, state, now_ms)
            if led:
                keep(partition, known)
            return is_new

        return become_leader

    replace(f"{PARTITION}.apply_altered_isr", make_altered)
    replace(f"{PARTITION}.become_leader", make_become_leader)


@mutant(
    about="a leader commits without a slow follower that ZooKeeper still counts as in sync",
    models="an ISR that is shrunk in memory without the controller's write",
    scenario="lagging-successor",
    guarantee="lost_write",
    unsimulated="it does not play that order of faults",
)
def isr_shrink_not_persisted(mark: Mark) -> None:
    """Applies a smaller ISR locally and sends no AlterPartition."""

    def make(original: Function) -> Function:
        def maybe_shrink(partition: Any, now_ms: float) -> None:
            propose, was = partition.propose, partition.isr
            partition.propose = lambda _partition: None
            try:
                original(partition, now_ms)
            finally:
                partition.propose = propose
            proposed = partition.isr.proposed
            if partition.isr is not was and proposed is not None:
                mark.hit()
                partition.isr = type(was)(proposed)

        return maybe_shrink

    replace("urteil.broker.replication.partition:Partition.maybe_shrink", make)


@mutant(
    about="a follower joins the ISR with its first fetch, however far it lags",
    models="KAFKA-7128: ISR expansion below the high watermark and the start of the leader's epoch",
    scenario="slow-return",
    guarantee="lost_write",
    unsimulated=BANDWIDTH,
)
def isr_joined_too_early(mark: Mark) -> None:
    """Ignores the high watermark and the start of the leader's epoch."""

    def make(original: Function) -> Function:
        def maybe_expand(partition: Any, follower: Any) -> None:
            here = partition.isr.is_in_flight or follower.broker_id in partition.isr.committed
            if here or not partition.is_eligible(follower.broker_id):
                return
            if follower.end_offset < partition.log.high_watermark:
                mark.hit()
            partition.isr = partition.isr.expand(follower.broker_id)
            partition.propose(partition)

        return maybe_expand

    replace("urteil.broker.replication.partition:Partition._maybe_expand", make)


@mutant(
    about="a leader applies a smaller ISR before the controller has accepted it",
    models="an ISR changed before it is persisted, against KIP-497's maximal ISR",
    scenario="lone-leader",
    guarantee="lost_write",
    unsimulated="topics there require two replicas in sync, and the leader that loses is alone",
)
def isr_shrunk_before_consent(mark: Mark) -> None:
    """Applies a proposed ISR at once, with no request in flight."""

    def make(original: Function) -> Function:
        def maybe_shrink(partition: Any, now_ms: float) -> None:
            original(partition, now_ms)
            isr = partition.isr
            if isr.is_in_flight and len(isr.proposed) < len(isr.committed):
                mark.hit()
                partition.isr = type(isr)(isr.proposed)
                original(partition, now_ms)

        return maybe_shrink

    replace("urteil.broker.replication.partition:Partition.maybe_shrink", make)


@mutant(
    about="a follower that stopped fetching stays in the ISR, and acks=all waits for it",
    models="an ISR expiration task that died",
    scenario="lagging-follower",
    guarantee="no_progress",
    unsimulated=NOT_FOUND_BY_THREE,
)
def isr_never_shrinks(mark: Mark) -> None:
    """Reports no follower as lagging."""

    def make(original: Function) -> Function:
        def lags(partition: Any, broker_id: int, end: int, now_ms: float) -> bool:
            if original(partition, broker_id, end, now_ms):
                mark.hit()
            return False

        return lags

    replace("urteil.broker.replication.partition:Partition._is_lagging", make)


@mutant(
    about="a new leader forgets which transactions are open in its log",
    models="a last stable offset that is computed only from the leader's own appends",
    scenario="transactions-restart",
    guarantee="aborted_read",
)
def open_transactions_forgotten(mark: Mark) -> None:
    """Clears the open transactions of a log when its broker becomes leader."""

    def make(original: Function) -> Function:
        def begin(partition: Any, state: Any, now_ms: float, *, is_new_leader: bool) -> None:
            original(partition, state, now_ms, is_new_leader=is_new_leader)
            ongoing = partition.log.producers._ongoing
            if is_new_leader and ongoing:
                mark.hit()
                ongoing.clear()

        return begin

    replace("urteil.broker.replication.partition:Partition._begin_epoch", make)


@mutant(
    about="records are committed when min.insync.replicas of the ISR have them, instead of all",
    models="min.insync.replicas treated as a quorum size",
    scenario="cut-successor",
    guarantee="lost_write",
)
def quorum_watermark(mark: Mark) -> None:
    """Computes the high watermark from min.insync.replicas members of the ISR."""

    def make(original: Function) -> Function:
        def advance(partition: Any, now_ms: float) -> bool:
            is_raised = bool(original(partition, now_ms))
            if not partition.is_leader or partition.is_under_min_isr:
                return is_raised
            members = [
                follower.end_offset
                for follower in partition.followers.values()
                if follower.broker_id in partition.isr.committed
            ]
            ends = sorted([partition.log.log_end_offset, *members], reverse=True)
            enough = ends[partition.effective_min_isr - 1]
            if enough <= partition.log.high_watermark:
                return is_raised
            mark.hit()
            partition.log.update_high_watermark(enough)
            return True

        return advance

    replace("urteil.broker.replication.partition:Partition._advance_high_watermark", make)


@mutant(
    about="a deposed leader acknowledges the acks=all requests that were waiting for followers",
    models="delayed produce requests that a role change completes",
    scenario="preferred",
    guarantee="lost_write",
)
def deposed_leader_acknowledges(mark: Mark) -> None:
    """Completes waiting produce requests without error when the leader is deposed."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def produce_outcome(partition: Any, required_offset: int) -> Any:
            result = original(partition, required_offset)
            if result is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                mark.hit()
                return ErrorCode.NONE
            return result

        return produce_outcome

    replace("urteil.broker.replication.partition:Partition.acknowledgement", make)


@mutant(
    about="a follower joins the ISR before it has reached the start of the leader's epoch",
    models="KAFKA-7128",
    scenario="untold-successor",
    guarantee="lost_write",
    unsimulated=BANDWIDTH,
)
def isr_joined_below_epoch_start(mark: Mark) -> None:
    """Ignores the start offset of the leader's epoch."""

    def make(original: Function) -> Function:
        def maybe_expand(partition: Any, follower: Any) -> Any:
            start = partition.epoch_start_offset
            if follower.end_offset < start and follower.broker_id not in partition.isr.committed:
                if follower.end_offset >= partition.log.high_watermark:
                    mark.hit()
                partition.epoch_start_offset = 0
            try:
                return original(partition, follower)
            finally:
                partition.epoch_start_offset = start

        return maybe_expand

    replace("urteil.broker.replication.partition:Partition._maybe_expand", make)


@mutant(
    about="acks=all to one partition is never answered after the hundredth append",
    models="delayed operations that no purgatory watches",
    scenario="group-calm",
    guarantee="no_progress",
)
def delayed_produces_forgotten(mark: Mark) -> None:
    """Reports, from the hundredth append on, that replicas are missing."""
    requests = 0

    def make(original: Function) -> Function:
        def produce_outcome(partition: Any, required_offset: int) -> Any:
            nonlocal requests
            is_one = partition.partition == 1 and not partition.topic.startswith("__")
            requests += is_one
            if is_one and requests > BEFORE:
                mark.hit()
                return None
            return original(partition, required_offset)

        return produce_outcome

    replace("urteil.broker.replication.partition:Partition.acknowledgement", make)


@mutant(
    about="the lag of followers is measured by the wall clock, which may go back",
    models="class Partition of Apache Kafka, isFollowerOutOfSync",
    scenario="clock-back",
    guarantee="stalled_partition",
    unsimulated="the patch reads the clock of the machine, not that of the simulation",
)
def lag_by_wall_clock(mark: Mark) -> None:
    """Adds to each measured lag what the wall clock gained on the monotonic one."""
    import time

    def ahead_ms() -> float:
        return (time.time_ns() - time.monotonic_ns()) / 1_000_000

    began_ms = ahead_ms()

    def make(original: Function) -> Function:
        def is_caught_up(follower: Any, end: int, now_ms: float, max_lag_ms: float) -> bool:
            is_lagging = not original(follower, end, now_ms, max_lag_ms)
            by_wall_ms = now_ms + ahead_ms() - began_ms
            result: bool = original(follower, end, by_wall_ms, max_lag_ms)
            if result and is_lagging:
                mark.hit()
            return result

        return is_caught_up

    replace("urteil.broker.replication.follower_state:FollowerState.is_caught_up", make)
