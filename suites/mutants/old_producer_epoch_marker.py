"""Counts every producer epoch as the current one in a marker."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log appends markers of an older producer epoch"
MODELS = "a zombie's marker that ends its successor's transaction"
SCENARIO = "transactional-paused"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def add(staged: Any, header: Any, base_offset: int, data: Any) -> Any:
            entry = staged._entry(header.producer_id)
            if header.producer_epoch < entry.epoch and header.is_control:
                mark.hit()
                entry.enter_epoch(header.producer_epoch)
            return original(staged, header, base_offset, data)

        return add

    replace("urteil.broker.log.producer_states:StagedBatches.add", make)
