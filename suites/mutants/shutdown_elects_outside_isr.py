"""Elects the first live replica where no other ISR member lives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "a controlled shutdown elects a live replica that is not in sync, though unclean "
    "election is off"
)
MODELS = "an election at shutdown that ignores the ISR"
SCENARIO = "lone-shutdown"
GUARANTEE = "unclean_leader"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def for_shutdown(
            state: Any, replicas: Sequence[int], live: Collection[int], controller_epoch: int
        ) -> Any:
            result = original(state, replicas, live, controller_epoch)
            alive = [one for one in replicas if one in live]
            if result is not None or state.leader in live or not alive:
                return result
            mark.hit()
            isr = (*alive[:1], *state.isr)
            return original(changed(state, isr=isr), replicas, live, controller_epoch)

        return for_shutdown

    replace("urteil.broker.controller.leader_selection:for_shutdown", make)
