"""Writes group metadata with acks=1."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group's new generation is answered before its record is replicated"
MODELS = "group metadata appended with acks=1"
SCENARIO = "lost-generations"
GUARANTEE = "generation_went_back"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def append(groups: Any, *args: Any, **more: Any) -> Any:
            if any(type(key).__name__ == "GroupMetadataKey" for key, _ in args[1]):
                mark.hit()
                more["acks"] = 1
            return await original(groups, *args, **more)

        return append

    replace("urteil.broker.groups.coordinator:GroupCoordinator.append", make)
