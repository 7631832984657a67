"""Clears the members' assignments of each group that is loaded."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator loads a group without its members' assignments"
MODELS = "loadGroup that omits the assignments of GroupMetadataValue"
SCENARIO = "lost-generations"
GUARANTEE = "generation_went_back"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def restore(group: Any, value: Any, now_ms: float) -> None:
            original(group, value, now_ms)
            for member in group.members.values():
                mark.hit()
                member.assignment = b""

        return restore

    replace("urteil.broker.groups.shard:restore", make)
