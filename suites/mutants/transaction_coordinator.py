"""The transaction coordinator, its log and its markers."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace as changed
from types import SimpleNamespace
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.early_acknowledgement import Hasty
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import NOT_FOUND_BY_THREE, UNREACHED

COORDINATOR = "urteil.broker.transactions.coordinator:TransactionCoordinator"
DECISIONS = "__transaction_state"
BEFORE = 60


@mutant(
    about="an aborted transaction over several partitions leaves one of them without a marker",
    models="a marker that is not sent again after its request failed",
    scenario="transactions",
    guarantee="torn_txn",
)
def abort_marker_on_some_partitions(mark: Mark) -> None:
    """Omits the first partition when the markers of an abort are sent."""

    def make(original: Function) -> Function:
        async def write(
            markers: Any, marker: Any, partitions: Iterable[Any], *more: Function
        ) -> Any:
            left = sorted(partitions)
            if not marker.commit and len(left) > 1:
                mark.hit()
                left = left[1:]
            return await original(markers, marker, left, *more)

        return write

    replace("urteil.broker.transactions.marker_sender:MarkerSender.write", make)


@mutant(
    about="a coordinator sends the markers of a commit before its decision is stored",
    models="a two-phase commit whose decision is not durable before its second phase",
    scenario="lost-decision",
    guarantee="torn_txn",
    unsimulated=NOT_FOUND_BY_THREE,
)
def txn_commit_before_prepare_persisted(mark: Mark) -> None:
    """Sends the markers at once, and again after the decision is stored."""

    def make(original: Function) -> Function:
        async def decide(
            coordinator: Any, shard: Any, transactional_id: str, txn: Any, step: Any
        ) -> Any:
            from urteil.broker.transactions.marker_sender import Marker
            from urteil.broker.transactions.transaction import TxnState

            if step.state is TxnState.PREPARE_COMMIT:
                mark.hit()
                marker = Marker(
                    producer_id=step.producer_id,
                    producer_epoch=step.producer_epoch,
                    commit=True,
                    coordinator_epoch=shard.leader_epoch,
                )
                hurried = coordinator._markers.write(
                    marker, step.partitions, lambda: True, lambda _: None
                )
                coordinator._tasks.spawn(hurried)
            return await original(coordinator, shard, transactional_id, txn, step)

        return decide

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator._decide", make)


@mutant(
    about="a new coordinator sends the markers of a decided transaction and never completes it",
    models="KAFKA-12671: InitProducerId answers CONCURRENT_TRANSACTIONS for ever",
    scenario="unsent-markers",
    guarantee="hanging_txn",
    unsimulated=UNREACHED,
)
def transactional_id_kept(mark: Mark) -> None:
    """Stores the completion of a transaction only where the decision was made."""
    from urteil.broker.wire.errors import ErrorCode

    decided: set[tuple[str, int]] = set()

    def make_decide(original: Function) -> Function:
        async def decide(coordinator: Any, shard: Any, tid: str, txn: Any, step: Any) -> Any:
            decided.add((tid, step.producer_epoch))
            return await original(coordinator, shard, tid, txn, step)

        return decide

    def make_append(original: Function) -> Function:
        async def append(coordinator: Any, shard: Any, tid: str, step: Any) -> Any:
            is_end = step is not None and step.state.name.startswith("COMPLETE")
            if is_end and (tid, step.producer_epoch) not in decided:
                mark.hit()
                return ErrorCode.NOT_COORDINATOR
            return await original(coordinator, shard, tid, step)

        return append

    replace(f"{COORDINATOR}._decide", make_decide)
    replace(f"{COORDINATOR}._append", make_append)


@mutant(
    about="a late record of a completed transaction opens a transaction that nothing ends",
    models="KAFKA-14402 (before KIP-890): hanging transactions",
    scenario="late-produce",
    guarantee="hanging_txn",
    unsimulated=NOT_FOUND_BY_THREE,
)
def partition_not_verified(mark: Mark) -> None:
    """Counts every first batch of a transaction as verified."""
    from urteil.broker.log.transaction_verification import TRUSTED

    def make(original: Function) -> Function:
        def start(verifier: Any, claims: Any) -> Any:
            _, unverified = original(verifier, claims)
            if unverified:
                mark.hit()
            return dict.fromkeys(claims, TRUSTED), {}

        return start

    replace("urteil.broker.transactions.partition_verifier:PartitionVerifier._start", make)


@mutant(
    about="a deposed transaction coordinator keeps its transactions and uses them when it returns",
    models="a transaction shard that is not unloaded at resignation",
    scenario="transactions-moved",
    guarantee="hanging_txn",
    mix="transactions",
)
def txn_coordinator_not_unloaded(mark: Mark) -> None:
    """Ignores the loss of a partition of __transaction_state."""

    def make(original: Function) -> Function:
        def change_leadership(
            ids: Any, topic: str, partition: int, is_leader: bool, epoch: int
        ) -> None:
            if topic == DECISIONS and partition in ids._shards and not is_leader:
                mark.hit()
            else:
                original(ids, topic, partition, is_leader, epoch)

        return change_leadership

    replace(
        "urteil.broker.transactions.coordinator:TransactionCoordinator.leadership_changed", make
    )


@mutant(
    about="a transaction's markers count as written before any follower has them",
    models="WriteTxnMarkers appended with acks=1",
    scenario="lost-markers",
    guarantee="torn_txn",
    unsimulated=NOT_FOUND_BY_THREE,
)
def marker_not_replicated(mark: Mark) -> None:
    """Appends markers with acks=1."""

    def make(original: Function) -> Function:
        async def write(markers: Any, *args: Any) -> Any:
            hasty = copy.copy(markers)
            hasty._replicas = Hasty(markers._replicas, mark)
            return await original(hasty, *args)

        return write

    replace("urteil.broker.transactions.marker_writer:MarkerWriter._write", make)


@mutant(
    about="AddPartitionsToTxn is answered before the coordinator's record is replicated",
    models="a transaction log that is written with acks=1 except for decisions",
    scenario="lost-additions",
    guarantee="torn_txn",
    unsimulated=NOT_FOUND_BY_THREE,
)
def added_partitions_not_replicated(mark: Mark) -> None:
    """Writes the coordinator's record of an ongoing transaction with acks=1."""

    def make(original: Function) -> Function:
        async def append(ids: Any, shard: Any, transactional_id: str, step: Any) -> Any:
            if step is not None and step.state.name == "ONGOING":
                mark.hit()
                replicas = ids._replicas

                def hasty(timeout_ms: int, _: int, *rest: Any, **kwargs: Any) -> Any:
                    return replicas.append(timeout_ms, 1, *rest, **kwargs)

                ids = copy.copy(ids)
                ids._replicas = SimpleNamespace(append=hasty)
            return await original(ids, shard, transactional_id, step)

        return append

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator._append", make)


@mutant(
    about="after a takeover one partition of a decided transaction never gets its marker",
    models="a decision read from the log without the first of its partitions",
    scenario="unsent-markers",
    guarantee="hanging_txn",
    unsimulated=NOT_FOUND_BY_THREE,
)
def marker_lost_in_takeover(mark: Mark) -> None:
    """Omits the first partition of each decision that is read from the log."""
    deciding: set[int] = set()

    def make_decide(original: Function) -> Function:
        async def decide(ids: Any, shard: Any, transactional_id: str, txn: Any, step: Any) -> Any:
            deciding.add(id(txn))
            try:
                return await original(ids, shard, transactional_id, txn, step)
            finally:
                deciding.discard(id(txn))

        return decide

    def complete(original: Function) -> Function:
        def begin_completion(ids: Any, shard: Any, transactional_id: str, txn: Any) -> None:
            if id(txn) not in deciding and len(txn.now.partitions) > 1:
                mark.hit()
                rest = frozenset(sorted(txn.now.partitions)[1:])
                txn.now = changed(txn.now, partitions=rest)
            original(ids, shard, transactional_id, txn)

        return begin_completion

    where = "urteil.broker.transactions.coordinator:TransactionCoordinator."
    replace(where + "_decide", make_decide)
    replace(where + "_begin_completion", complete)


@mutant(
    about="a new coordinator never aborts the transactions that were open at its takeover",
    models="timers that only AddPartitionsToTxn sets",
    scenario="transactions-moved",
    guarantee="hanging_txn",
    unsimulated=NOT_FOUND_BY_THREE,
)
def txn_timeouts_not_loaded(mark: Mark) -> None:
    """Sets no timeout for transactions that are loaded from the log."""
    loaded: dict[int, Any] = {}

    def make_replay(original: Function) -> Function:
        def replay(shard: Any, key: Any, value: Any) -> None:
            original(shard, key, value)
            loaded.update((id(txn.now), txn.now) for txn in shard.transactions.values())

        return replay

    def make_overdue(original: Function) -> Function:
        def is_overdue(txn: Any, now_ms: int) -> bool:
            over = original(txn, now_ms)
            if over and loaded.get(id(txn.now)) is txn.now:
                mark.hit()
                return False
            return bool(over)

        return is_overdue

    replace("urteil.broker.transactions.shard:Shard._replay", make_replay)
    replace("urteil.broker.transactions.transaction:Transaction.is_overdue", make_overdue)


@mutant(
    about="InitProducerId logs the previous epoch: the next coordinator assigns the same "
    "epoch again",
    models="KIP-98: fencing that is forgotten when the coordinator changes",
    scenario="transactions-moved",
    guarantee="zombie_write",
    unsimulated=NOT_FOUND_BY_THREE,
)
def producer_epoch_not_logged(mark: Mark) -> None:
    """Writes the previous epoch in InitProducerId's record, until a transaction begins."""

    def make(original: Function) -> Function:
        def encode_value(txn: Any) -> Any:
            if txn.state.name == "EMPTY" and txn.producer_epoch > 0:
                mark.hit()
                txn = changed(txn, producer_epoch=txn.producer_epoch - 1)
            return original(txn)

        return encode_value

    replace("urteil.broker.transactions.records:encode_value", make)


@mutant(
    about="transaction.max.timeout.ms is ignored",
    models="a limit that is not enforced",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def transactions_of_any_length(mark: Mark) -> None:
    """Accepts every timeout."""

    def make(original: Function) -> Function:
        async def initialise(
            coordinator: Any, transactional_id: str, timeout_ms: int, expected: Any
        ) -> Any:
            most = coordinator._config.transaction_max_timeout_ms
            if timeout_ms > most:
                mark.hit()
            return await original(coordinator, transactional_id, min(timeout_ms, most), expected)

        return initialise

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator.initialise", make)


@mutant(
    about="after sixty transactions EndTxn is always answered with CONCURRENT_TRANSACTIONS",
    models="coordinators whose pending transition never completes",
    scenario="transactions-calm",
    guarantee="no_progress",
    mix="transactions",
)
def transactions_always_concurrent(mark: Mark) -> None:
    """Answers each EndTxn after the sixtieth with CONCURRENT_TRANSACTIONS."""
    from urteil.broker.wire.errors import ErrorCode

    ended = 0

    def make(original: Function) -> Function:
        async def end(coordinator: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal ended
            ended += 1
            if ended > BEFORE:
                mark.hit()
                return ErrorCode.CONCURRENT_TRANSACTIONS
            return await original(coordinator, *args, **kwargs)

        return end

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator.end", make)
