"""The epoch of a new producer is in its coordinator's memory alone."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "InitProducerId writes the epoch of the producer before: who takes over gives it once more"
MODELS = "fencing forgotten when the coordinator changes (KIP-98)"
SCENARIO = "transactions-moved"
GUARANTEE = "zombie_write"


def apply(mark: Mark) -> None:
    """Until a transaction begins, whose record has the present epoch."""

    def make(original: Function) -> Function:
        def encode_value(txn: Any) -> Any:
            if txn.state.name == "EMPTY" and txn.producer_epoch > 0:
                mark.hit()
                txn = changed(txn, producer_epoch=txn.producer_epoch - 1)
            return original(txn)

        return encode_value

    replace("urteil.broker.transactions.records:encode_value", make)
