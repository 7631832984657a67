"""Adds one to the end offset of each past epoch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetForLeaderEpoch answers an end offset that is one too high"
MODELS = "an end offset treated as inclusive (KIP-101, KIP-320)"
SCENARIO = "indexes"
GUARANTEE = "epoch_lineage"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def find_epoch_end(partition: Any, leader_epoch: int, current_leader_epoch: int) -> Any:
            error, epoch, end = original(partition, leader_epoch, current_leader_epoch)
            if 0 <= end < partition.log.log_end_offset:
                mark.hit()
                end += 1
            return error, epoch, end

        return find_epoch_end

    replace("urteil.broker.api.list_offsets:find_epoch_end", make)
