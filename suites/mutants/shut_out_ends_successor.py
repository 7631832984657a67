"""EndTxn of a producer that was shut out ends the transaction of its successor."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "EndTxn of an older epoch of a producer is carried out as if it were of this one"
MODELS = "EndTxn that compares the producer's id alone (KIP-98 fences by its epoch)"
SCENARIO = "transactional-paused"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    """The transaction compares the epoch of who ends it with itself."""

    def make(original: Function) -> Function:
        def end(txn: Any, producer_id: int, producer_epoch: int, **how: Any) -> Any:
            if how["by_client"] and producer_epoch < txn.now.producer_epoch:
                mark.hit()
                producer_epoch = txn.now.producer_epoch
            return original(txn, producer_id, producer_epoch, **how)

        return end

    replace("urteil.broker.transactions.state:Transaction.end", make)
