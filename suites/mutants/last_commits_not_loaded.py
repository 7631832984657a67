"""A new coordinator does not know the positions that were committed last."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a coordinator that takes over a partition of the offsets topic leaves out its last batches"
MODELS = "offset commits lost when a coordinator fails over"
SCENARIO = "committed-registers"
GUARANTEE = "commit_went_back"

LEFT_OUT = 50


def apply(mark: Mark) -> None:
    """What lies so close to the log's end is not replayed."""

    def make(original: Function) -> Function:
        async def walk(partition_log: Any) -> AsyncIterator[Any]:
            end = partition_log.log_end_offset - LEFT_OUT
            async for header, batch in original(partition_log):
                if header.base_offset < end:
                    yield header, batch
                else:
                    mark.hit()

        return walk

    replace("urteil.broker.groups.loading:walk", make)
