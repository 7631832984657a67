"""The cleaner takes what was aborted for the newest value of its key."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records of aborted transactions supersede committed ones when their log is cleaned"
MODELS = "a cleaner that does not look at the transaction index"
SCENARIO = "transactions-cleaned"
GUARANTEE = "latest_value_lost"


def apply(mark: Mark) -> None:
    """No data is of an aborted transaction; markers are told as before."""

    def make(original: Function) -> Function:
        def discards(walk: Any, header: Any, data: Any) -> bool:
            found = bool(original(walk, header, data))
            if not found or header.is_control:
                return found
            mark.hit()
            return False

        return discards

    replace("urteil.broker.log.cleaner.transaction_tracker:TransactionTracker.discards", make)
