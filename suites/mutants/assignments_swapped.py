"""Shifts the leader's assignments by one member."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the coordinator gives each member the assignment meant for the member before it"
MODELS = "assignments matched with members by order instead of by member id"
SCENARIO = "group-calm"
GUARANTEE = "two_owners"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def assigned(group: Any, generation: int, assignments: Any, now_ms: float) -> None:
            names, meant = list(assignments), list(assignments.values())
            if len(set(meant)) > 1:
                mark.hit()
                assignments = dict(zip(names, meant[-1:] + meant[:-1], strict=True))
            original(group, generation, assignments, now_ms)

        return assigned

    replace("urteil.broker.groups.group:Group.assigned", make)
