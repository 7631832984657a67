"""Moves the start of each transaction into the past."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the coordinator aborts a transaction after a sixteenth of its timeout"
MODELS = "a timeout in another unit than the client's"
SCENARIO = "transactions-held-open"
GUARANTEE = "hanging_txn"

SHARE = 16


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_overdue(transaction: Any, now_ms: int) -> bool:
            timeout_ms = transaction.now.timeout_ms
            early = original(transaction, now_ms + timeout_ms - timeout_ms // SHARE)
            if early and not original(transaction, now_ms):
                mark.hit()
            return bool(early)

        return is_overdue

    replace("urteil.broker.transactions.transaction:Transaction.is_overdue", make)
