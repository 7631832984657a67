"""Counts every broker epoch as the current one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker obeys a controller request that was meant for its previous life"
MODELS = "KAFKA-7235"
SCENARIO = "late-metadata"
GUARANTEE = "disagreement"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def fence(control: Any, controller_epoch: int, broker_epoch: int) -> Any:
            if 0 <= broker_epoch < control._broker_epoch():
                mark.hit()
                broker_epoch = control._broker_epoch()
            return original(control, controller_epoch, broker_epoch)

        return fence

    replace("urteil.broker.replication.role_changes:RoleChanges.fence", make)
