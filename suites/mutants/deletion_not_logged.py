"""What is deleted of a group is forgotten by its coordinator alone."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group's coordinator forgets what is deleted, and writes no tombstones"
MODELS = "a deletion in memory, which the log undoes as soon as somebody reads it"
SCENARIO = "committed-registers"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    """Whoever is the next coordinator knows the positions again."""
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
