"""Keeps the previous ISR when an election follows a broker's end."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a controller elects a new leader and keeps the dead broker in the ISR"
MODELS = "an offline leader that is not removed from the ISR"
SCENARIO = "leader-crash"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def after(state: Any, replicas: Any, **more: Any) -> Any:
            chosen = original(state, replicas, **more)
            if chosen is None or chosen.leader not in state.isr or chosen.isr == state.isr:
                return chosen
            mark.hit()
            return changed(chosen, isr=state.isr)

        return after

    replace("urteil.broker.controller.leader_selection:after_failure", make)
