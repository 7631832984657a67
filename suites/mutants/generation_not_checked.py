"""A commit is taken from whoever is a member, in whatever generation."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetCommit of an older generation is stored as if it were of this one"
MODELS = "a zombie that was kicked out overwrites what its successor committed"
SCENARIO = "zombie-commits"
GUARANTEE = "zombie_commit"


def apply(mark: Mark) -> None:
    """The group compares the generation of a commit with itself."""

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
