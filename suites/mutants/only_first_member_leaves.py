"""Removes the first member of a LeaveGroup request only."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "LeaveGroup of several members removes only the first one"
MODELS = "LeaveGroup 3 served as the versions before"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def leave(coordinator: Any, group_id: str, members: Any) -> Any:
            if len(members) > 1:
                mark.hit()
            error, errors = original(coordinator, group_id, members[:1])
            return error, errors * len(members)

        return leave

    replace("urteil.broker.groups.coordinator:GroupCoordinator.leave", make)
