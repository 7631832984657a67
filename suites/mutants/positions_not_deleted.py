"""Keeps the offsets that OffsetDelete names."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetDelete is acknowledged, and the offsets remain"
MODELS = "an answer that does not wait for its deletion"
SCENARIO = "committed-registers"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        async def forget(
            administration: Any, shard: Any, group: Any, places: Any, *, whole: bool, **how: Any
        ) -> Any:
            if not whole:
                mark.hit()
                return ErrorCode.NONE
            return await original(administration, shard, group, places, whole=whole, **how)

        return forget

    replace("urteil.broker.groups.maintenance:GroupMaintenance._forget", make)
