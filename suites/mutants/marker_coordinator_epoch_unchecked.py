"""Skips the comparison of coordinator epochs."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a marker is written whatever the epoch of its coordinator"
MODELS = "KIP-98: zombie coordinators that are not fenced"
SCENARIO = "transactional-paused"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    from urteil.broker.log.producer_states import read_marker

    def make(original: Function) -> Function:
        def add_marker(staged: Any, entry: Any, header: Any, base_offset: int, data: Any) -> Any:
            marker = read_marker(data)
            if marker is not None and marker.coordinator_epoch < entry.coordinator_epoch:
                mark.hit()
                entry.coordinator_epoch = marker.coordinator_epoch
            return original(staged, entry, header, base_offset, data)

        return add_marker

    replace("urteil.broker.log.producer_states:StagedBatches._add_marker", make)
