"""A controller elects another leader for one that left, which stays in sync."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "elections leave those in the ISR who left; nothing is committed until the leader notices"
MODELS = "an offline leader that is not taken out of the ISR"
SCENARIO = "leader-crash"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    """The ISR of before goes on."""

    def make(original: Function) -> Function:
        def after(state: Any, replicas: Any, **more: Any) -> Any:
            chosen = original(state, replicas, **more)
            if chosen is None or chosen.leader not in state.isr or chosen.isr == state.isr:
                return chosen
            mark.hit()
            return changed(chosen, isr=state.isr)

        return after

    replace("urteil.broker.controller.elections:after_failure", make)
