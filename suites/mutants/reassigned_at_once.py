"""New replicas take the place of the old ones before they have what those have."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a reassignment is completed at once: the new replicas lead before they are in sync"
MODELS = "old replicas removed before the new ones are in the ISR, against KIP-455"
SCENARIO = "reassign-sole"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    """All that is asked for counts as in sync, and the first of the new replicas leads."""
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

    replace("urteil.broker.controller.reassignment:Assignment.is_complete", make_complete)
    replace("urteil.broker.controller.elections:for_reassignment", make_election)
