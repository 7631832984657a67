"""Keeps a replaced controller active and compares no controller epoch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a replaced controller continues, and ZooKeeper and brokers accept its requests"
MODELS = "controller epochs unchecked, as before the multis of KAFKA-6082"
SCENARIO = "controller-deleted"
GUARANTEE = "epoch_went_back"


def apply(mark: Mark) -> None:
    def make_still_won(original: Function) -> Function:
        async def still_won(election: Any, won: Any) -> bool:
            if not await original(election, won):
                mark.hit()
            return True

        return still_won

    def make_fenced(_original: Function) -> Function:
        async def fenced(store: Any, ops: Any) -> None:
            await store._zk.multi(list(ops))

        return fenced

    def make_fence(original: Function) -> Function:
        def fence(control: Any, controller_epoch: int, broker_epoch: int) -> Any:
            return original(
                control, max(controller_epoch, control._replicas.controller_epoch), broker_epoch
            )

        return fence

    replace(
        "urteil.broker.controller.controller_election:ControllerElection.still_won", make_still_won
    )
    replace("urteil.broker.controller.metadata_store:MetadataStore.fenced", make_fenced)
    replace("urteil.broker.replication.role_changes:RoleChanges.fence", make_fence)
