"""Bumps no epoch, neither for a new producer nor when its predecessor's transaction ends."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "InitProducerId keeps the epoch: requests of the previous producer remain valid"
MODELS = "KIP-98: the zombie producer"
SCENARIO = "transactional-paused"
GUARANTEE = "zombie_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def initialise(
            txn: Any, expected_epoch: int | None, timeout_ms: int, now_ms: int, new_id: int | None
        ) -> Any:
            step = original(txn, expected_epoch, timeout_ms, now_ms, new_id)
            if new_id is not None or txn.now.producer_epoch < 0 or not hasattr(step, "state"):
                return step
            mark.hit()
            return changed(step, producer_epoch=txn.now.producer_epoch)

        return initialise

    def keep(original: Function) -> Function:
        def fence(txn: Any) -> Any:
            return changed(original(txn), producer_epoch=txn.now.producer_epoch)

        return fence

    replace("urteil.broker.transactions.transaction:Transaction.initialise", make)
    replace("urteil.broker.transactions.transaction:Transaction.fence", keep)
