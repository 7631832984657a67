"""An administrator deletes `/controller`, although the controller and its session live."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.fault import WITH_ZOOKEEPER, Fault, Proof
from urteil.chaos.observations import ControllerTerm
from urteil.chaos.waiting import until

ELECTED_S = 10.0
POLL_S = 0.02


class ControllerDeleted(Fault):
    """Deletes the znode `/controller`, as operators do to force the election of a controller. The
    fault ignores its target, because there is only one controller."""

    name = "controller_deleted"
    about = "delete /controller: the controller must resign, and another election follows"
    effects = frozenset({Effect.DEPOSES_CONTROLLER})
    proves = "a later transaction created /controller after the deletion"
    selectors = "controller"
    on_targets = WITH_ZOOKEEPER
    sample = "controller"

    def begin(self, controls: Controls) -> Proof:
        before = controls.zookeeper_admin.controller_term()
        self.targets = (before.broker,) if before else ()
        controls.zookeeper_admin.delete_controller()
        after = _await_election(controls, before)
        acted = before is not None and after != before
        return Proof(acted=acted, text=f"/controller was {before or 'absent'}, now {after}")

    def heal(self, controls: Controls) -> str:
        return f"the controller is {_await_election(controls, None) or 'absent'}"

    def find_residual_effects(self, controls: Controls) -> str:
        return "" if controls.zookeeper_admin.controller_term() else "no broker is controller"


def _await_election(controls: Controls, before: ControllerTerm | None) -> ControllerTerm | None:
    """The first term other than `before`, or the current one when the deadline passes."""
    return until(
        controls.zookeeper_admin.controller_term,
        lambda term: term not in (None, before),
        deadline_s=ELECTED_S,
        poll_s=POLL_S,
    )
