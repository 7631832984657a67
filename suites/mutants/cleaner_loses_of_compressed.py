"""Drops the last retained record of a compressed batch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a compressed batch that the cleaner shortens loses one record too many"
MODELS = "a cleaner that rebuilds compressed batches incorrectly"
SCENARIO = "compaction"
GUARANTEE = "latest_value_lost"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def written(retention: Any, header: Any, data: Any, kept: Any, *, without_txn: bool) -> Any:
            body, scanned, numbers = kept
            if header.compression and 1 < len(numbers) < header.records_count:
                mark.hit()
                kept = body, scanned, numbers[:-1]
            return original(retention, header, data, kept, without_txn=without_txn)

        return written

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._written", make)
