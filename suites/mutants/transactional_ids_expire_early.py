"""Reports every transactional id without an open transaction as expired."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a coordinator forgets transactional ids that were used a moment ago"
MODELS = "transactional.id.expiration.ms compared the wrong way round"
SCENARIO = "transactions-held-open"
GUARANTEE = "hanging_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_expired(txn: Any, now_ms: int, expiration_ms: int) -> Any:
            result = original(txn, txn.now.updated_ms + expiration_ms, expiration_ms)
            if result:
                mark.hit()
            return result

        return is_expired

    replace("urteil.broker.transactions.transaction:Transaction.is_expired", make)
