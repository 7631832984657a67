"""Somebody deletes `/controller` by hand: the controller lives, and its session too."""

from __future__ import annotations

import time

from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import KAFKA, MIX, URTEIL, Fault, Proof
from urteil.chaos.observations import ControllerTerm

ELECTED_S = 10.0
POLL_S = 0.02


class ControllerDeleted(Fault):
    """Delete the znode `/controller`, as operators do to force an election of the controller.

    There is one controller: the target is not read.
    """

    name = "controller_deleted"
    about = "/controller deleted by hand: the controller must resign, and one is elected"
    family = "zookeeper"
    proves = "/controller was made by a later transaction than the one that was deleted"
    selectors = "controller"
    on_targets = (URTEIL, KAFKA, MIX)
    sample = "controller"

    def begin(self, controls: Controls) -> Proof:
        before = controls.zookeeper_admin.controller_term()
        self.targets = (before.broker,) if before else ()
        controls.zookeeper_admin.delete_controller()
        after = _elected(controls, before)
        acted = before is not None and after != before
        return Proof(acted=acted, text=f"/controller was {before or 'nobody'}, now {after}")

    def heal(self, controls: Controls) -> str:
        return f"the controller is {_elected(controls, None) or 'nobody'}"

    def find_residual_effects(self, controls: Controls) -> str:
        return "" if controls.zookeeper_admin.controller_term() else "no broker is controller"


def _elected(controls: Controls, before: ControllerTerm | None) -> ControllerTerm | None:
    """Who controls by another term than `before`; whoever does when the deadline passed."""
    deadline = time.monotonic() + ELECTED_S
    while (found := controls.zookeeper_admin.controller_term()) in (None, before):
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    return found
