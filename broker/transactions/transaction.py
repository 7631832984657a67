"""One transactional id: its state in the log, and the permitted transitions.

Sources: `TransactionMetadata`, `TransactionState`, `TransactionCoordinator` of Kafka 3.9; KIP-98,
KIP-360 (epochs bumped on request of the client), KIP-588. A method (`initialise`, `add`, `end` ...)
computes the next state. It is `pending` while it is appended to the log, and `replay` applies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from urteil.broker.wire.errors import ErrorCode

TopicPartition = tuple[str, int]

NO_EPOCH = -1
NO_PRODUCER_ID = -1
LAST_EPOCH = (1 << 15) - 1
"""The largest epoch. A producer id is exhausted one epoch before it."""


class TxnState(Enum):
    """States by Kafka's ids. PREPARE_EPOCH_FENCE is only ever pending, never in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Kafka's name of the state: `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


PREPARED = (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)
AT_REST = (TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)

FOLLOWS: dict[TxnState, tuple[TxnState, ...]] = {
    TxnState.EMPTY: AT_REST,
    TxnState.ONGOING: (TxnState.ONGOING, *AT_REST),
    TxnState.PREPARE_COMMIT: (TxnState.ONGOING,),
    TxnState.PREPARE_ABORT: (TxnState.ONGOING, TxnState.PREPARE_EPOCH_FENCE),
    TxnState.COMPLETE_COMMIT: (TxnState.PREPARE_COMMIT,),
    TxnState.COMPLETE_ABORT: (TxnState.PREPARE_ABORT,),
    TxnState.DEAD: AT_REST,
    TxnState.PREPARE_EPOCH_FENCE: (TxnState.ONGOING,),
}
"""The states from which each may be entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnMetadata:
    """The state of a transactional id; times are wall time in ms, -1 means none.

    The previous producer id and epoch let a client repeat an InitProducerId whose answer was lost.
    They are not in the log and are lost when the coordinator moves.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TxnState
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    updated_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    previous_epoch: int = NO_EPOCH

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no further epoch."""
        return self.producer_epoch >= LAST_EPOCH - 1

    def by_topic(self) -> dict[str, list[int]]:
        """Partitions by topic, in order."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            topics.setdefault(topic, []).append(partition)
        return topics


Step = TxnMetadata | ErrorCode
"""The next state, or the error."""


class Transaction:
    """The present state of one transactional id, and the step that is being appended."""

    __slots__ = ("fence_failed", "now", "pending")

    def __init__(self, now: TxnMetadata) -> None:
        self.now = now
        self.pending: TxnMetadata | None = None
        self.fence_failed = False

    def begin(self, step: TxnMetadata) -> None:
        """Mark a step as pending; no other may begin until it is replayed or dropped.

        Raises RuntimeError for a step that must not follow the present state: a bug.
        """
        if self.pending is not None or self.now.state not in FOLLOWS[step.state]:
            raise RuntimeError(f"{step.state.title} cannot follow {self.now}, {self.pending}")
        self.pending = step

    def replay(self, step: TxnMetadata) -> None:
        """Apply a step that is in the log. A step to EMPTY keeps the start of the last transaction
        in memory."""
        if step.state is TxnState.EMPTY:
            step = replace(step, started_ms=self.now.started_ms)
        self.now, self.pending = step, None

    def drop(self) -> None:
        """Drop the pending step: its append failed."""
        self.pending = None

    def record_remaining(self, partitions: frozenset[TopicPartition]) -> None:
        """Record the partitions that have no marker yet."""
        self.now = replace(self.now, partitions=partitions)

    # -- steps ----------------------------------------------------------------------------------

    def check(self, producer_id: int, producer_epoch: int) -> ErrorCode:
        """Check the producer id and epoch against the present ones."""
        if producer_id != self.now.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if producer_epoch != self.now.producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE

    def may_continue(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a client with this id and epoch may continue with the transactional id."""
        now = self.now
        return (
            now.producer_epoch == NO_EPOCH
            or producer_id == now.producer_id
            or (producer_id == now.previous_producer_id and producer_epoch >= LAST_EPOCH - 1)
        )

    def needs_new_id(self, expected_epoch: int | None) -> bool:
        return self.now.is_exhausted and expected_epoch in (None, self.now.producer_epoch)

    def initialise(
        self, expected_epoch: int | None, timeout_ms: int, now_ms: int, new_id: int | None
    ) -> Step:
        """The next epoch, or `new_id` with epoch 0, of a transactional id without an open
        transaction; PRODUCER_FENCED if the client's epoch is neither the present nor the previous
        one."""
        now = self.now
        common = replace(
            now,
            state=TxnState.EMPTY,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=-1,
            updated_ms=now_ms,
            previous_producer_id=now.producer_id,
        )
        if new_id is not None:
            return replace(
                common,
                producer_id=new_id,
                producer_epoch=0,
                previous_epoch=NO_EPOCH if expected_epoch is None else now.producer_epoch,
            )
        bumped = replace(common, producer_epoch=now.producer_epoch + 1)
        if expected_epoch is None:
            return replace(bumped, previous_epoch=NO_EPOCH)
        if now.producer_epoch in (NO_EPOCH, expected_epoch):
            return replace(bumped, previous_epoch=now.producer_epoch)
        if expected_epoch == now.previous_epoch:
            return common  # a repeated request whose first answer was lost
        return ErrorCode.PRODUCER_FENCED

    def fence(self) -> TxnMetadata:
        """The ongoing transaction in the epoch that fences its producer."""
        bump = 0 if self.fence_failed else 1  # a fence that failed has bumped it already
        return replace(
            self.now,
            state=TxnState.PREPARE_EPOCH_FENCE,
            producer_epoch=self.now.producer_epoch + bump,
            previous_epoch=NO_EPOCH,
        )

    def add(self, partitions: frozenset[TopicPartition], now_ms: int) -> Step:
        """Add partitions; NONE if the transaction has all of them."""
        now = self.now
        if self.pending is not None or now.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_ongoing = now.state is TxnState.ONGOING
        if is_ongoing and partitions <= now.partitions:
            return ErrorCode.NONE
        return replace(
            now,
            state=TxnState.ONGOING,
            partitions=now.partitions | partitions,
            started_ms=now.started_ms if is_ongoing else now_ms,
            updated_ms=now_ms,
        )

    def end(
        self, producer_id: int, producer_epoch: int, *, commit: bool, by_client: bool, now_ms: int
    ) -> Step:
        """The decision to commit or abort; NONE if it is complete already."""
        now, fencing = self.now, self._is_fencing
        if producer_id != now.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if producer_epoch < now.producer_epoch or (
            by_client and producer_epoch != now.producer_epoch
        ):
            return ErrorCode.PRODUCER_FENCED
        if self.pending is not None and not fencing:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if now.state is TxnState.ONGOING:
            if fencing and not commit:
                self.now = now = replace(now, producer_epoch=producer_epoch, previous_epoch=-1)
                self.pending = None
            state = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
            return replace(now, state=state, updated_ms=now_ms)
        if now.state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT):
            return ErrorCode.NONE
        if now.state is (TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return ErrorCode.INVALID_TXN_STATE

    @property
    def _is_fencing(self) -> bool:
        return self.pending is not None and self.pending.state is TxnState.PREPARE_EPOCH_FENCE

    def complete(self, now_ms: int) -> TxnMetadata:
        """The state after all markers are written."""
        committed = self.now.state is TxnState.PREPARE_COMMIT
        self.fence_failed = False
        return replace(
            self.now,
            state=TxnState.COMPLETE_COMMIT if committed else TxnState.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the open transaction has lasted longer than its timeout."""
        now = self.now
        return (
            now.state is TxnState.ONGOING
            and self.pending is None
            and now.started_ms + now.timeout_ms < now_ms
        )

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        return (
            self.now.state in AT_REST
            and self.pending is None
            and self.now.updated_ms <= now_ms - expiration_ms
        )
