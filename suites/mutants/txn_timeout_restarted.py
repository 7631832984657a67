"""Measures the timeout from the transaction's last update."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the timeout of a transaction restarts with each partition that is added"
MODELS = "transaction.timeout.ms measured from the last request"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def overdue(txn: Any, now_ms: int) -> bool:
            is_late: bool = original(txn, now_ms)
            if is_late and txn.now.updated_ms + txn.now.timeout_ms >= now_ms:
                mark.hit()
                return False
            return is_late

        return overdue

    replace("urteil.broker.transactions.transaction:Transaction.is_overdue", make)
