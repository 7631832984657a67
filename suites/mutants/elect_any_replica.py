"""Elects as if unclean election were enabled."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a replica outside the ISR is elected although unclean election is disabled"
MODELS = "unclean election with unclean.leader.election.enable=false"
SCENARIO = "unclean-off"
GUARANTEE = "unclean_leader"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def after_failure(state: Any, replicas: Any, **given: Any) -> Any:
            clean = original(state, replicas, **given)
            dirty = original(state, replicas, **(given | {"unclean": True}))
            if clean != dirty:
                mark.hit()
            return dirty

        return after_failure

    replace("urteil.broker.controller.leader_selection:after_failure", make)
