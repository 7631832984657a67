"""Answers a lookup by timestamp with the leader's current epoch."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets by timestamp returns the leader's epoch instead of the record's"
MODELS = "KIP-320: the leader epoch of a found record, read from the partition"
SCENARIO = "indexes"
GUARANTEE = "time_index_wrong"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **how: Any) -> Any:
            result = await original(partition, timestamp, **how)
            if timestamp >= 0 and 0 <= result.leader_epoch < partition.leader_epoch:
                mark.hit()
                return changed(result, leader_epoch=partition.leader_epoch)
            return result

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
