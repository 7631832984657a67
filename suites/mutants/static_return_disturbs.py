"""A static member's return is a rebalance like any other."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a static member that is back before its session ran out has its group rebalance"
MODELS = "KIP-345 without its point: every rejoin by an unknown id is a new member"
SCENARIO = "static-members"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    """Rebalance where there is nothing to do but to store the new id."""

    def make(original: Function) -> Function:
        def again(group: Any, request: Any, now_ms: float, *given: Any, **more: Any) -> bool:
            if original(group, request, now_ms, *given, **more):
                mark.hit()
                for member in group.members.values():
                    member.before = None
                group._prepare_rebalance(now_ms)
            return False

        return again

    replace("urteil.broker.groups.group:Group._replace_static", make)
