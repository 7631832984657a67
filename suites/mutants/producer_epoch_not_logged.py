"""Writes the previous epoch in InitProducerId's record, until a transaction begins."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "InitProducerId logs the previous epoch: the next coordinator assigns the same epoch again"
MODELS = "KIP-98: fencing that is forgotten when the coordinator changes"
SCENARIO = "transactions-moved"
GUARANTEE = "zombie_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def encode_value(txn: Any) -> Any:
            if txn.state.name == "EMPTY" and txn.producer_epoch > 0:
                mark.hit()
                txn = changed(txn, producer_epoch=txn.producer_epoch - 1)
            return original(txn)

        return encode_value

    replace("urteil.broker.transactions.records:encode_value", make)
