"""A leader that shuts down hands over to whoever lives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a controlled shutdown moves leadership to a live replica that is not in sync"
MODELS = "an election at shutdown that forgets the ISR: unclean though that is off"
SCENARIO = "lone-shutdown"
GUARANTEE = "unclean_leader"


def apply(mark: Mark) -> None:
    """Where nobody in sync is left, the first live replica takes over, and is the ISR."""

    def make(original: Function) -> Function:
        def for_shutdown(
            state: Any, replicas: Sequence[int], live: Collection[int], controller_epoch: int
        ) -> Any:
            told = original(state, replicas, live, controller_epoch)
            alive = [one for one in replicas if one in live]
            if told is not None or state.leader in live or not alive:
                return told
            mark.hit()
            isr = (*alive[:1], *state.isr)
            return original(changed(state, isr=isr), replicas, live, controller_epoch)

        return for_shutdown

    replace("urteil.broker.controller.elections:for_shutdown", make)
