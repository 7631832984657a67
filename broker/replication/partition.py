"""One hosted partition: leader or follower, fenced by epochs, with its ISR and high watermark.

All methods but one are synchronous, and time is an argument. The rules are those of
`kafka.cluster.Partition` of Apache Kafka 3.9 (KIP-101, 279, 320, 497, KAFKA-15583). Invariants of a
leader: the high watermark is at most the end offset of every possible member of the ISR, and it
does not rise while the ISR is below min.insync.replicas.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from urteil.broker.base.clock import Clock
from urteil.broker.base.offload import in_turns, run_steps
from urteil.broker.base.purgatory import Watchers
from urteil.broker.log.batch_checks import Batches, Rejection
from urteil.broker.log.partition_log import AppendResult, PartitionLog
from urteil.broker.log.transaction_verification import TRUSTED, Guard
from urteil.broker.replication.follower_state import FollowerState
from urteil.broker.replication.isr_state import IsrState
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import LeaderAndIsrRequest

log = logging.getLogger("partition")

NO_LEADER = -1
UP_TO_HIGH_WATERMARK = -1
WRITTEN_AT_ONCE_BYTES = 1 << 20
State = LeaderAndIsrRequest.LeaderAndIsrPartitionState


class Partition:
    """State of one partition on this broker.

    `propose(partition)` sends an ISR change to the controller. New members must be
    `is_eligible(broker_id)`: alive, as far as this broker knows.
    `on_appended` is notified of appends, `on_committed` of a higher high watermark and
    `on_low_watermark` of a later log start of a replica. All three are notified of every change of
    role or ISR, so that delayed operations check their conditions again.
    """

    __slots__ = (
        "broker_id", "epoch_start_offset", "followers", "future",
        "is_eligible", "is_reassigning", "isr",
        "leader_epoch", "leader_id", "log", "max_lag_ms", "on_appended", "on_committed",
        "on_low_watermark", "partition", "partition_epoch", "propose", "replicas",
        "replication_factor", "retirement_error", "topic", "turn",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        partition: int,
        log: PartitionLog,
        broker_id: int,
        max_lag_ms: float,
        propose: Callable[[Partition], None],
        is_eligible: Callable[[int], bool],
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.log = log
        self.broker_id = broker_id
        self.max_lag_ms = max_lag_ms
        self.propose = propose
        self.is_eligible = is_eligible
        self.future: PartitionLog | None = None  # a copy that will replace the log
        self.retirement_error = ErrorCode.NONE
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = -1
        self.replicas: tuple[int, ...] = ()
        self.replication_factor = 0  # without the replicas that a reassignment adds
        self.is_reassigning = False
        self.isr = IsrState(())
        self.followers: dict[int, FollowerState] = {}
        self.turn = asyncio.Lock()
        self.on_appended = Watchers()
        self.on_committed = Watchers()
        self.on_low_watermark = Watchers()

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.broker_id

    @property
    def topic_id(self) -> UUID:
        return self.log.topic_id

    # -- roles ----------------------------------------------------------------------------------

    def become_leader(self, state: State, now_ms: float) -> bool:
        """Become leader with this state; True if this broker did not lead before.

        An older partition epoch is ignored: an AlterPartition response was newer. The current state
        is ignored, too: it must not cancel a proposal that the controller may have written.
        """
        if state.partition_epoch < self.partition_epoch:
            return False
        was_leader = self.is_leader
        known = self.leader_epoch, self.partition_epoch
        if was_leader and (state.leader_epoch, state.partition_epoch) == known:
            return False
        self._assign(state)
        if state.leader_epoch > self.leader_epoch:
            self._begin_epoch(state, now_ms, is_new_leader=not was_leader)
        self.isr = IsrState(tuple(state.isr))
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.leader_id = self.broker_id
        self._advance_high_watermark(now_ms)
        self._notify_all()
        return not was_leader

    def _begin_epoch(self, state: State, now_ms: float, *, is_new_leader: bool) -> None:
        end = self.log.log_end_offset
        self.epoch_start_offset = end
        self.log.assign_epoch_start(state.leader_epoch, end)
        for follower in self.followers.values():
            follower.reset(
                now_ms,
                end,
                is_new_leader=is_new_leader,
                is_in_sync=follower.broker_id in state.isr,
            )

    def become_follower(self, state: State) -> bool:
        """Become follower with this state; True if the leader epoch is new: fetching must
        restart."""
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self.replicas = tuple(state.replicas)
        self.followers = {}
        self.isr = IsrState(())
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.leader_id = state.leader
        self.epoch_start_offset = -1
        self._notify_all()
        return is_new_epoch

    def resign(self) -> None:
        """Stop leading: a newer epoch has another leader, which LeaderAndIsr names later."""
        self.leader_id = NO_LEADER
        self._notify_all()

    def _assign(self, state: State) -> None:
        self.replicas = tuple(state.replicas)
        self.replication_factor = len(set(state.replicas) - set(state.adding_replicas))
        self.is_reassigning = bool(state.adding_replicas or state.removing_replicas)
        self.followers = {
            replica: self.followers.get(replica) or FollowerState(replica)
            for replica in self.replicas
            if replica != self.broker_id
        }

    @property
    def is_retired(self) -> bool:
        """Whether this broker hosts it no more; `retirement_error` is the reason."""
        return self.retirement_error is not ErrorCode.NONE

    def retire(self, error: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> None:
        """Stop hosting the partition; delayed operations end with the error."""
        self.retirement_error = error
        self.leader_id = NO_LEADER
        self._notify_all()

    def _notify_all(self) -> None:
        self.on_committed.notify()
        self.on_appended.notify()
        self.on_low_watermark.notify()

    # -- fencing --------------------------------------------------------------------------------

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Compare a caller's leader epoch with ours; -1 means unknown."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def check_leader(self, current_leader_epoch: int) -> ErrorCode:
        """NONE if this broker leads in the caller's epoch."""
        error = self.check_epoch(current_leader_epoch)
        if error is ErrorCode.NONE and not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return error

    # -- appending ------------------------------------------------------------------------------

    @property
    def effective_min_isr(self) -> int:
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.isr.committed) < self.effective_min_isr

    def append(
        self,
        data: memoryview,
        acks: int,
        wall_ms: int,
        now_ms: float,
        *,
        from_client: bool = True,
        guard: Guard | None = TRUSTED,
    ) -> AppendResult:
        """Append as leader. NOT_LEADER_OR_FOLLOWER and NOT_ENOUGH_REPLICAS change nothing."""
        refused = self.append_error(acks)
        if refused is not None:
            return refused
        admitted = run_steps(self.log.validate_append(data, wall_ms, from_client=from_client))
        return self.append_validated(
            admitted, acks, wall_ms, now_ms, from_client=from_client, guard=guard
        )

    async def append_in_turn(
        self,
        admitted: Batches | Rejection,
        acks: int,
        clock: Clock,
        *,
        from_client: bool,
        guard: Guard | None,
    ) -> AppendResult:
        """`append_validated` after all earlier appends, at the time when its turn comes. A large
        batch is written in pieces while other requests run; the broker's own appends may come
        first."""
        log = self.log
        async with self.turn:
            wall_ms, now_ms = clock.now_ms(), clock.monotonic_ms()
            admitted = log.stamp(admitted, wall_ms)
            if _is_large(admitted) and self.append_error(acks) is None:
                try:
                    await in_turns(log.write_ahead(admitted, wall_ms))
                    return self.append_validated(
                        admitted, acks, wall_ms, now_ms, from_client=from_client, guard=guard
                    )
                finally:
                    log.drop_write_ahead()
            return self.append_validated(
                admitted, acks, wall_ms, now_ms, from_client=from_client, guard=guard
            )

    def append_error(self, acks: int) -> AppendResult | None:
        """The error of every append in the current state, None if appends are possible."""
        if not self.is_leader:
            return refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and self.is_under_min_isr:
            return refusal(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {len(self.isr.committed)} in-sync replicas, "
                f"needs {self.effective_min_isr}",
                log_start_offset=self.log.log_start_offset,
            )
        return None

    def append_validated(
        self,
        admitted: Batches | Rejection,
        acks: int,
        wall_ms: int,
        now_ms: float,
        *,
        from_client: bool = True,
        guard: Guard | None = TRUSTED,
    ) -> AppendResult:
        """Append batches that were checked before, possibly in an earlier state of the
        partition."""
        refused = self.append_error(acks)
        if refused is not None:
            return refused
        result = self.log.append_validated(
            admitted, self.leader_epoch, wall_ms, from_client=from_client, guard=guard
        )
        if result.error is ErrorCode.NONE and not result.duplicate:
            if self._advance_high_watermark(now_ms):
                self.on_committed.notify()
            self.on_appended.notify()
        return result

    def acknowledgement(self, required_offset: int) -> ErrorCode | None:
        """The acks=all result for all records below `required_offset`; None: not decided yet."""
        if self.is_retired:
            return self.retirement_error
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark < required_offset:
            return None
        if self.is_under_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    # -- followers ------------------------------------------------------------------------------

    def record_follower_fetch(
        self,
        broker_id: int,
        fetch_offset: int,
        start_offset: int,
        now_ms: float,
        broker_epoch: int = -1,
    ) -> None:
        """Record a fetch in the current epoch: the follower has all records below
        `fetch_offset`."""
        follower = self.followers[broker_id]
        follower.broker_epoch = broker_epoch
        previous_end, previous_start = follower.end_offset, follower.start_offset
        follower.record_fetch(fetch_offset, start_offset, now_ms, self.log.log_end_offset)
        if start_offset != previous_start:
            self.on_low_watermark.notify()
        self._maybe_expand(follower)
        if follower.end_offset != previous_end and self._advance_high_watermark(now_ms):
            self.on_committed.notify()

    def is_idle_fetch(
        self, broker_id: int, fetch_offset: int, now_ms: float, *, note: bool = True
    ) -> bool:
        """Whether a fetch changes nothing: of a member of the ISR that is still at the log's end.
        With `note` its time is recorded."""
        follower = self.followers.get(broker_id)
        if (
            follower is None
            or fetch_offset != self.log.log_end_offset
            or follower.end_offset != fetch_offset
            or broker_id not in self.isr.committed
        ):
            return False
        if note:
            follower.last_fetch_leader_end = fetch_offset
            follower.last_fetch_ms = follower.last_caught_up_ms = now_ms
        return True

    def _maybe_expand(self, follower: FollowerState) -> None:
        if self.isr.is_in_flight or follower.broker_id in self.isr.committed:
            return
        end = follower.end_offset
        has_reached = end >= self.log.high_watermark and end >= self.epoch_start_offset >= 0
        if has_reached and self.is_eligible(follower.broker_id):
            self.isr = self.isr.expand(follower.broker_id)
            log.info("%s: expanding ISR to %s", self, self.isr.proposed)
            self.propose(self)

    def maybe_shrink(self, now_ms: float) -> None:
        """Propose to remove the members of the ISR that were not caught up for too long.

        This may also raise the high watermark: it waited for a joining follower that stopped
        fetching.
        """
        if self._advance_high_watermark(now_ms):
            self._notify_all()
        if not self.is_leader or self.isr.is_in_flight:
            return
        end = self.log.log_end_offset
        lagging = {
            member
            for member in self.isr.committed
            if member != self.broker_id and self._is_lagging(member, end, now_ms)
        }
        if lagging:
            self.isr = self.isr.shrink(lagging)
            log.info("%s: shrinking ISR to %s", self, self.isr.proposed)
            self.propose(self)

    def _is_lagging(self, broker_id: int, end: int, now_ms: float) -> bool:
        follower = self.followers.get(broker_id)
        return follower is None or not follower.is_caught_up(end, now_ms, self.max_lag_ms)

    # -- deleting records -----------------------------------------------------------------------

    @property
    def low_watermark(self) -> int:
        """As leader: the lowest log start offset of all live replicas."""
        live = (each for each in self.followers.values() if self.is_eligible(each.broker_id))
        starts = [self.log.log_start_offset, *(follower.start_offset for follower in live)]
        if self.future is not None:
            starts.append(self.future.log_start_offset)
        return min(starts)

    def delete_records(self, offset: int) -> int | ErrorCode:
        """Move the log start to `offset`, -1 for the high watermark; return the new start.

        Errors as in `Partition.deleteRecordsOnLeader`: NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION for
        a compacted-only topic, OFFSET_OUT_OF_RANGE,
        KAFKA_STORAGE_ERROR. Raises OSError.
        """
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self.log.config.deletes:
            return ErrorCode.POLICY_VIOLATION
        if self.log.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if offset == UP_TO_HIGH_WATERMARK:
            offset = self.log.high_watermark
        if offset < 0:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        error = self.log.increment_log_start_offset(offset)
        return offset if error is ErrorCode.NONE else error

    # -- responses of the controller ------------------------------------------------------------

    def apply_altered_isr(
        self, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...], now_ms: float
    ) -> None:
        """Adopt an ISR that the controller wrote; an outdated response is ignored."""
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return
        if not self.is_leader:
            return
        self.isr = IsrState(isr)
        self.partition_epoch = partition_epoch
        log.info("%s: ISR is %s at partition epoch %d", self, isr, partition_epoch)
        self._advance_high_watermark(now_ms)
        self._notify_all()

    def roll_back_isr(self, proposed: IsrState, now_ms: float) -> None:
        """Withdraw a proposal that the controller certainly did not apply."""
        if self.isr is proposed:
            self.isr = proposed.rollback()
            if self._advance_high_watermark(now_ms):
                self._notify_all()

    # -- high watermark -------------------------------------------------------------------------

    def _advance_high_watermark(self, now_ms: float) -> bool:
        """Raise the high watermark to the offset that every possible member of the ISR has; return
        whether it rose.

        Not below min ISR: a leader alone would commit records that acks=all must not acknowledge
        (KAFKA-15583). Caught-up followers outside the ISR count, too: otherwise the high watermark
        could stay ahead of them for ever, and they would never join.
        """
        if not self.is_leader or self.is_under_min_isr:
            return False
        end = target = self.log.log_end_offset
        maximal = self.isr.maximal
        for follower in self.followers.values():
            if follower.end_offset < target and (
                follower.broker_id in maximal or self._is_joining(follower, end, now_ms)
            ):
                target = follower.end_offset
        if target <= self.log.high_watermark:
            return False
        self.log.update_high_watermark(target)
        return True

    def _is_joining(self, follower: FollowerState, end: int, now_ms: float) -> bool:
        caught_up = follower.is_caught_up(end, now_ms, self.max_lag_ms)
        return caught_up and self.is_eligible(follower.broker_id)


def refusal(
    error: ErrorCode, message: str | None = None, *, log_start_offset: int = -1
) -> AppendResult:
    """The result of an append that was not done."""
    return AppendResult(error=error, message=message, log_start_offset=log_start_offset)


def _is_large(admitted: Batches | Rejection) -> bool:
    if isinstance(admitted, Rejection):
        return False
    return sum(header.size for header, _ in admitted) > WRITTEN_AT_ONCE_BYTES
