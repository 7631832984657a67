"""Counts all target replicas as in sync and elects the first new one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a reassignment completes at once: new replicas lead before they are in sync"
MODELS = "KIP-455: old replicas removed before the new ones are in the ISR"
SCENARIO = "reassign-sole"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    from dataclasses import replace as changed

    def make_complete(original: Function) -> Function:
        def is_complete(assignment: Any, isr: Any, live: Any) -> bool:
            return True

        return is_complete

    def make_election(original: Function) -> Function:
        def for_reassignment(state: Any, target: Any, live: Any, controller_epoch: int) -> Any:
            if not set(target) <= set(state.isr):
                mark.hit()
                state = changed(state, isr=tuple(target))
            return original(state, target, live, controller_epoch)

        return for_reassignment

    replace(
        "urteil.broker.controller.replica_assignment:ReplicaAssignment.is_complete", make_complete
    )
    replace("urteil.broker.controller.leader_selection:for_reassignment", make_election)
