"""Who asks where an epoch ended is told one offset more."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetForLeaderEpoch answers the first offset of the next epoch as the last of the old one"
MODELS = "an end that is taken for inclusive (KIP-101, KIP-320)"
SCENARIO = "indexes"
GUARANTEE = "epoch_lineage"


def apply(mark: Mark) -> None:
    """Of epochs that are over; the present one ends where the log does."""

    def make(original: Function) -> Function:
        def epoch_end(partition: Any, leader_epoch: int, current_leader_epoch: int) -> Any:
            error, epoch, end = original(partition, leader_epoch, current_leader_epoch)
            if 0 <= end < partition.log.log_end_offset:
                mark.hit()
                end += 1
            return error, epoch, end

        return epoch_end

    replace("urteil.broker.api.list_offsets:epoch_end", make)
