"""Drops the last partition of an AddPartitionsToTxn request that has two or more."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "AddPartitionsToTxn adds all partitions of a request but the last"
MODELS = "a transaction that ends without one of its partitions"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def add(txn: Any, partitions: frozenset[Any], now_ms: int) -> Any:
            if len(partitions) > 1:
                mark.hit()
                partitions = partitions - {max(partitions)}
            return original(txn, partitions, now_ms)

        return add

    replace("urteil.broker.transactions.transaction:Transaction.add", make)
