"""Returns the first block of producer ids each time."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the controller gives every broker the same block of producer ids"
MODELS = "a block that is allocated without an update of /latest_producer_id_block"
SCENARIO = "indexes"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def take_block(zk: Any, broker_id: int) -> tuple[int, int]:
            first, last = await original(zk, broker_id)
            if first:
                mark.hit()
            return 0, last - first

        return take_block

    replace("urteil.broker.controller.term:take_block", make)
