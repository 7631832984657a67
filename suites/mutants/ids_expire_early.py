"""Transactional ids are forgotten as soon as they are at rest."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a coordinator forgets transactional ids that were used a moment ago"
MODELS = "transactional.id.expiration.ms compared the wrong way round"
SCENARIO = "transactions-held-open"
GUARANTEE = "hanging_txn"


def apply(mark: Mark) -> None:
    """Whoever is at rest is old."""

    def make(original: Function) -> Function:
        def is_expired(txn: Any, now_ms: int, expiration_ms: int) -> Any:
            found = original(txn, txn.now.updated_ms + expiration_ms, expiration_ms)
            if found:
                mark.hit()
            return found

        return is_expired

    replace("urteil.broker.transactions.state:Transaction.is_expired", make)
