"""Retains no control batch in a cleaning."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cleaner drops markers at once, whether or not their records remain"
MODELS = "KIP-534: control batches without a delete horizon"
SCENARIO = "transactions-cleaned"
GUARANTEE = "hanging_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def of(retention: Any, header: Any, data: Any) -> Any:
            kept = original(retention, header, data)
            if kept is not None and header.is_control and header.next_offset != retention.round_end:
                mark.hit()
                return None
            return kept

        return of

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention.of", make)
