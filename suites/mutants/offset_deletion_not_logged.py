"""Removes deleted offsets from memory and writes no tombstones."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "deleted offsets of a group return when its coordinator changes"
MODELS = "a deletion in memory that the log undoes"
SCENARIO = "committed-registers"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        async def append(coordinator: Any, *args: Any, **how: Any) -> Any:
            if how.get("acks") != 0:
                return await original(coordinator, *args, **how)
            mark.hit()
            shard, entries = args
            for key, _ in entries:
                if hasattr(key, "topic"):
                    shard.offsets[key.group].pop((key.topic, key.partition), None)
            return ErrorCode.NONE

        return append

    replace("urteil.broker.groups.coordinator:GroupCoordinator.append", make)
