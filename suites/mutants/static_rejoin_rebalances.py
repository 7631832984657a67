"""Starts a rebalance where only the new member id must be stored."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a static member that rejoins within its session timeout starts a rebalance"
MODELS = "KIP-345: every join with an unknown member id treated as a new member"
SCENARIO = "static-members"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
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
