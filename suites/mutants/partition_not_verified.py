"""Counts every first batch of a transaction as verified."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a late record of a completed transaction opens a transaction that nothing ends"
MODELS = "KAFKA-14402 (before KIP-890): hanging transactions"
SCENARIO = "late-produce"
GUARANTEE = "hanging_txn"


def apply(mark: Mark) -> None:
    from urteil.broker.log.transaction_verification import TRUSTED

    def make(original: Function) -> Function:
        def start(verifier: Any, claims: Any) -> Any:
            _, asked = original(verifier, claims)
            if asked:
                mark.hit()
            return dict.fromkeys(claims, TRUSTED), {}

        return start

    replace("urteil.broker.transactions.partition_verifier:PartitionVerifier._start", make)
