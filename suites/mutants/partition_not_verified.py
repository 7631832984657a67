"""A late record of a transaction that is over opens one that nobody will ever end."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader does not ask whether a producer's transaction has its partition before it appends"
MODELS = "hanging transactions before KIP-890, KAFKA-14402"
SCENARIO = "late-produce"
GUARANTEE = "hanging_txn"


def apply(mark: Mark) -> None:
    """Every first batch of a transaction is trusted."""
    from urteil.broker.log.transaction_verification import TRUSTED

    def make(original: Function) -> Function:
        def start(verifier: Any, claims: Any) -> Any:
            _, asked = original(verifier, claims)
            if asked:
                mark.hit()
            return dict.fromkeys(claims, TRUSTED), {}

        return start

    replace("urteil.broker.transactions.verification:Verifier._start", make)
