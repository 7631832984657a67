"""Compares the generation of a commit with itself."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetCommit of an older generation is accepted"
MODELS = "a removed member that overwrites its successor's commits"
SCENARIO = "zombie-commits"
GUARANTEE = "zombie_commit"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def check_commit(
            group: Any, member_id: str, instance_id: str | None, generation: int, now_ms: float
        ) -> Any:
            if 0 <= generation < group.generation:
                mark.hit()
                generation = group.generation
            return original(group, member_id, instance_id, generation, now_ms)

        return check_commit

    replace("urteil.broker.groups.group:Group.check_commit", make)
