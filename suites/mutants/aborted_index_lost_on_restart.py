"""Skips the entries of the transaction index when a log is loaded."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a restarted broker treats the index of aborted transactions as empty"
MODELS = "an index that exists in memory only"
SCENARIO = "transactions-restart"
GUARANTEE = "aborted_read"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def load(index: Any) -> Any:
            if original(index):
                mark.hit()
            return []

        return load

    replace("urteil.broker.log.txn_index:TxnIndex._load", make)
