"""Who does not join again is taken into the next generation all the same."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a member that missed a rebalance stays in its group"
MODELS = "a rebalance timeout (KIP-62) that puts nobody out"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """They are taken for static members, who may be late."""

    def make(original: Function) -> Function:
        def complete(group: Any, now_ms: float) -> None:
            absent = [
                one
                for one in group.members.values()
                if one.on_join is None and one.instance_id is None
            ]
            for one in absent:
                mark.hit()
                one.instance_id = one.member_id
            original(group, now_ms)
            for one in absent:
                one.instance_id = None

        return complete

    replace("urteil.broker.groups.group:Group._complete_join", make)
