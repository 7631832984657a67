"""The state of one transaction."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import NOT_FOUND_BY_THREE, UNREACHED

SHARE = 16


@mutant(
    about="InitProducerId keeps the epoch: requests of the previous producer remain valid",
    models="KIP-98: the zombie producer",
    scenario="transactional-paused",
    guarantee="zombie_write",
)
def zombie_not_fenced(mark: Mark) -> None:
    """Bumps no epoch, neither for a new producer nor when its predecessor's transaction ends."""

    def make(original: Function) -> Function:
        def initialise(
            txn: Any, expected_epoch: int | None, timeout_ms: int, now_ms: int, new_id: int | None
        ) -> Any:
            step = original(txn, expected_epoch, timeout_ms, now_ms, new_id)
            if new_id is not None or txn.now.producer_epoch < 0 or not hasattr(step, "state"):
                return step
            mark.hit()
            return changed(step, producer_epoch=txn.now.producer_epoch)

        return initialise

    def keep(original: Function) -> Function:
        def fence(txn: Any) -> Any:
            return changed(original(txn), producer_epoch=txn.now.producer_epoch)

        return fence

    replace("urteil.broker.transactions.transaction:Transaction.initialise", make)
    replace("urteil.broker.transactions.transaction:Transaction.fence", keep)


@mutant(
    about="a transaction that timed out is aborted, and its producer is not fenced",
    models="KIP-98: a coordinator's abort that does not bump the epoch",
    scenario="transactional-paused",
    guarantee="torn_txn",
)
def timed_out_keeps_epoch(mark: Mark) -> None:
    """Bumps no epoch when a transaction times out."""

    def make(original: Function) -> Function:
        def fence(txn: Any) -> Any:
            mark.hit()
            return changed(original(txn), producer_epoch=txn.now.producer_epoch)

        return fence

    replace("urteil.broker.transactions.transaction:Transaction.fence", make)


@mutant(
    about="the coordinator aborts a transaction after a sixteenth of its timeout",
    models="a timeout in another unit than the client's",
    scenario="transactions-held-open",
    guarantee="hanging_txn",
    unsimulated=NOT_FOUND_BY_THREE,
)
def transactions_cut_short(mark: Mark) -> None:
    """Moves the start of each transaction into the past."""

    def make(original: Function) -> Function:
        def is_overdue(transaction: Any, now_ms: int) -> bool:
            timeout_ms = transaction.now.timeout_ms
            early = original(transaction, now_ms + timeout_ms - timeout_ms // SHARE)
            if early and not original(transaction, now_ms):
                mark.hit()
            return bool(early)

        return is_overdue

    replace("urteil.broker.transactions.transaction:Transaction.is_overdue", make)


@mutant(
    about="EndTxn of a fenced producer ends its successor's transaction",
    models="KIP-98: EndTxn that compares only the producer id",
    scenario="transactional-paused",
    guarantee="torn_txn",
)
def fenced_producer_ends_transaction(mark: Mark) -> None:
    """Compares the epoch of an EndTxn request with itself."""

    def make(original: Function) -> Function:
        def end(txn: Any, producer_id: int, producer_epoch: int, **kwargs: Any) -> Any:
            if kwargs["by_client"] and producer_epoch < txn.now.producer_epoch:
                mark.hit()
                producer_epoch = txn.now.producer_epoch
            return original(txn, producer_id, producer_epoch, **kwargs)

        return end

    replace("urteil.broker.transactions.transaction:Transaction.end", make)


@mutant(
    about="a coordinator forgets transactional ids that were used a moment ago",
    models="transactional.id.expiration.ms compared the wrong way round",
    scenario="transactions-held-open",
    guarantee="hanging_txn",
    unsimulated=UNREACHED,
)
def transactional_ids_expire_early(mark: Mark) -> None:
    """Reports every transactional id without an open transaction as expired."""

    def make(original: Function) -> Function:
        def is_expired(txn: Any, now_ms: int, expiration_ms: int) -> Any:
            result = original(txn, txn.now.updated_ms + expiration_ms, expiration_ms)
            if result:
                mark.hit()
            return result

        return is_expired

    replace("urteil.broker.transactions.transaction:Transaction.is_expired", make)


@mutant(
    about="AddPartitionsToTxn adds all partitions of a request but the last",
    models="a transaction that ends without one of its partitions",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def last_added_partition_dropped(mark: Mark) -> None:
    """Drops the last partition of an AddPartitionsToTxn request that has two or more."""

    def make(original: Function) -> Function:
        def add(txn: Any, partitions: frozenset[Any], now_ms: int) -> Any:
            if len(partitions) > 1:
                mark.hit()
                partitions = partitions - {max(partitions)}
            return original(txn, partitions, now_ms)

        return add

    replace("urteil.broker.transactions.transaction:Transaction.add", make)


@mutant(
    about="the timeout of a transaction restarts with each partition that is added",
    models="transaction.timeout.ms measured from the last request",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def txn_timeout_restarted(mark: Mark) -> None:
    """Measures the timeout from the transaction's last update."""

    def make(original: Function) -> Function:
        def overdue(txn: Any, now_ms: int) -> bool:
            is_late: bool = original(txn, now_ms)
            if is_late and txn.now.updated_ms + txn.now.timeout_ms >= now_ms:
                mark.hit()
                return False
            return is_late

        return overdue

    replace("urteil.broker.transactions.transaction:Transaction.is_overdue", make)
