"""What is found by its time is told in the epoch of whoever tells it."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets by time answers with the leader's epoch, not with the record's"
MODELS = "the leader epoch of a found record (KIP-320), taken from the partition"
SCENARIO = "indexes"
GUARANTEE = "time_index_wrong"


def apply(mark: Mark) -> None:
    """Its reader believes that a log that was cut there is still whole."""

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **how: Any) -> Any:
            found = await original(partition, timestamp, **how)
            if timestamp >= 0 and 0 <= found.leader_epoch < partition.leader_epoch:
                mark.hit()
                return changed(found, leader_epoch=partition.leader_epoch)
            return found

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
