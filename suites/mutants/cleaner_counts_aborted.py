"""Hides aborted transactions from the cleaner, except for their markers."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records of aborted transactions supersede committed ones when their log is cleaned"
MODELS = "a cleaner that ignores the transaction index"
SCENARIO = "transactions-cleaned"
GUARANTEE = "latest_value_lost"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def discards(walk: Any, header: Any, data: Any) -> bool:
            result = bool(original(walk, header, data))
            if not result or header.is_control:
                return result
            mark.hit()
            return False

        return discards

    replace("urteil.broker.log.cleaner.transaction_tracker:TransactionTracker.discards", make)
