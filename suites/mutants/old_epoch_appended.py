"""Logs take batches of producers that were shut out."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log takes a batch whose producer epoch is over"
MODELS = "producer epochs that only the coordinator looks at"
SCENARIO = "transactional-paused"
GUARANTEE = "zombie_write"


def apply(mark: Mark) -> None:
    """Every epoch is the present one."""

    def make(original: Function) -> Function:
        def add(staged: Any, header: Any, base_offset: int, data: Any) -> Any:
            entry = staged._entry(header.producer_id)
            if header.producer_epoch < entry.epoch and not header.is_control:
                mark.hit()
                entry.enter_epoch(header.producer_epoch)
            return original(staged, header, base_offset, data)

        return add

    replace("urteil.broker.log.producer_states:StagedBatches.add", make)
