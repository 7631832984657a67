"""Skips the records near the end of the log when a partition is loaded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator does not load the last commits of its groups"
MODELS = "offset commits lost when a coordinator fails over"
SCENARIO = "committed-registers"
GUARANTEE = "commit_went_back"

LEFT_OUT = 50


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def walk(partition_log: Any) -> AsyncIterator[Any]:
            end = partition_log.log_end_offset - LEFT_OUT
            async for header, batch in original(partition_log):
                if header.base_offset < end:
                    yield header, batch
                else:
                    mark.hit()

        return walk

    replace("urteil.broker.groups.shard_loading:iter_log_batches", make)
