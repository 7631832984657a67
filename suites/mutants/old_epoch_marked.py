"""Markers end transactions of later epochs."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log takes a marker whose producer epoch is over"
MODELS = "a zombie's end taken for its successor's"
SCENARIO = "transactional-paused"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    """Every epoch is the present one."""

    def make(original: Function) -> Function:
        def add(staged: Any, header: Any, base_offset: int, data: Any) -> Any:
            entry = staged._entry(header.producer_id)
            if header.producer_epoch < entry.epoch and header.is_control:
                mark.hit()
                entry.enter_epoch(header.producer_epoch)
            return original(staged, header, base_offset, data)

        return add

    replace("urteil.broker.log.producer_states:StagedBatches.add", make)
