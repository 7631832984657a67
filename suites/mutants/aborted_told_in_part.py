"""Readers are not told of aborted transactions that began before their fetch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch is told of aborted transactions that begin in its range alone"
MODELS = "a search of the transaction index by first offset"
SCENARIO = "transactions-restart"
GUARANTEE = "aborted_read"


def apply(mark: Mark) -> None:
    """Who fetches from the middle of one takes the rest for committed."""

    def make(original: Function) -> Function:
        def aborted(log: Any, from_offset: int, to_offset: int) -> list[Any]:
            found = original(log, from_offset, to_offset)
            told = [one for one in found if one.first_offset >= from_offset]
            if len(told) < len(found):
                mark.hit()
            return told

        return aborted

    replace("urteil.broker.log.partition_log:PartitionLog.aborted_transactions", make)
