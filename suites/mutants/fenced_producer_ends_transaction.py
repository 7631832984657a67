"""Compares the epoch of an EndTxn request with itself."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "EndTxn of a fenced producer ends its successor's transaction"
MODELS = "KIP-98: EndTxn that compares only the producer id"
SCENARIO = "transactional-paused"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def end(txn: Any, producer_id: int, producer_epoch: int, **how: Any) -> Any:
            if how["by_client"] and producer_epoch < txn.now.producer_epoch:
                mark.hit()
                producer_epoch = txn.now.producer_epoch
            return original(txn, producer_id, producer_epoch, **how)

        return end

    replace("urteil.broker.transactions.transaction:Transaction.end", make)
