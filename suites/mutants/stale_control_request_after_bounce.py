"""A broker obeys a controller that speaks to its life before."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a request of the controller that is meant for an earlier life of the broker is obeyed"
MODELS = "KAFKA-7235"
SCENARIO = "late-metadata"
GUARANTEE = "disagreement"


def apply(mark: Mark) -> None:
    """Every life is this one."""

    def make(original: Function) -> Function:
        def fence(control: Any, controller_epoch: int, broker_epoch: int) -> Any:
            if 0 <= broker_epoch < control._broker_epoch():
                mark.hit()
                broker_epoch = control._broker_epoch()
            return original(control, controller_epoch, broker_epoch)

        return fence

    replace("urteil.broker.replication.role_changes:RoleChanges.fence", make)
