"""Reports room in every group."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "group.max.size is ignored"
MODELS = "KIP-389: group.max.size that is not enforced"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def has_room(group: Any, member_id: str) -> bool:
            fits: bool = original(group, member_id)
            if not fits:
                mark.hit()
            return True

        return has_room

    replace("urteil.broker.groups.group:Group._has_room", make)
