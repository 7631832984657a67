"""Counts the preferred replica as a member of the ISR."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "leadership returns to a preferred replica that is not in the ISR"
MODELS = "a leader rebalance that checks liveness only"
SCENARIO = "early-return"
GUARANTEE = "unclean_leader"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def to_preferred(state: Any, replicas: Any, live: Any, controller_epoch: int) -> Any:
            from dataclasses import replace as changed

            first = replicas[0]
            if state.leader != first and first in live and first not in state.isr:
                mark.hit()
                state = changed(state, isr=(*state.isr, first))
            return original(state, replicas, live, controller_epoch)

        return to_preferred

    replace("urteil.broker.controller.leader_selection:to_preferred", make)
