"""Removes REBALANCE_IN_PROGRESS from heartbeat answers."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "heartbeats do not report a rebalance"
MODELS = "a heartbeat that is always answered without error"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def heartbeat(group: Any, *asked: Any) -> Any:
            error = original(group, *asked)
            if error.name != "REBALANCE_IN_PROGRESS":
                return error
            mark.hit()
            return type(error).NONE

        return heartbeat

    replace("urteil.broker.groups.group:Group.heartbeat", make)
