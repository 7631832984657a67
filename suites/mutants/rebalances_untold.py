"""A heartbeat does not tell that the group rebalances."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "members are not told of a rebalance by their heartbeats"
MODELS = "a heartbeat that is always well answered"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """REBALANCE_IN_PROGRESS is no error."""

    def make(original: Function) -> Function:
        def heartbeat(group: Any, *asked: Any) -> Any:
            error = original(group, *asked)
            if error.name != "REBALANCE_IN_PROGRESS":
                return error
            mark.hit()
            return type(error).NONE

        return heartbeat

    replace("urteil.broker.groups.group:Group.heartbeat", make)
