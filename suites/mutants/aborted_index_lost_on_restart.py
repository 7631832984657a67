"""A broker that starts does not read what it had noted of aborted transactions."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the index of aborted transactions is taken for empty when a log is loaded"
MODELS = "an index that is kept in memory and forgotten with the process"
SCENARIO = "transactions-restart"
GUARANTEE = "aborted_read"


def apply(mark: Mark) -> None:
    """Entries on disk are not read."""

    def make(original: Function) -> Function:
        def load(index: Any) -> Any:
            if original(index):
                mark.hit()
            return []

        return load

    replace("urteil.broker.log.txn_index:TxnIndex._load", make)
