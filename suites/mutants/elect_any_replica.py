"""A partition without a live in-sync replica is given to any live one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a replica outside the ISR is elected although unclean election is off"
MODELS = "unclean election with unclean.leader.election.enable=false"
SCENARIO = "unclean-off"
GUARANTEE = "unclean_leader"


def apply(mark: Mark) -> None:
    """The controller elects as if unclean election were on."""

    def make(original: Function) -> Function:
        def after_failure(state: Any, replicas: Any, **given: Any) -> Any:
            clean = original(state, replicas, **given)
            dirty = original(state, replicas, **(given | {"unclean": True}))
            if clean != dirty:
                mark.hit()
            return dirty

        return after_failure

    replace("urteil.broker.controller.elections:after_failure", make)
