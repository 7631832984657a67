"""Removes aborted transactions that began before the fetch offset from the answer."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a Fetch answer omits aborted transactions that began before the fetch offset"
MODELS = "a search of the transaction index by first offset"
SCENARIO = "transactions-restart"
GUARANTEE = "aborted_read"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def aborted(log: Any, from_offset: int, to_offset: int) -> list[Any]:
            entries = original(log, from_offset, to_offset)
            reported = [one for one in entries if one.first_offset >= from_offset]
            if len(reported) < len(entries):
                mark.hit()
            return reported

        return aborted

    replace("urteil.broker.log.partition_log:PartitionLog.aborted_transactions", make)
