"""A transaction that timed out is aborted, and its producer is not shut out."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a transaction that lasts too long is aborted without a new epoch: its rest is another one"
MODELS = "an abort by the coordinator that bumps no epoch (KIP-98: it fences the producer)"
SCENARIO = "transactional-paused"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    """Whose transaction was aborted may begin the next one in its epoch."""

    def make(original: Function) -> Function:
        def fence(txn: Any) -> Any:
            mark.hit()
            return changed(original(txn), producer_epoch=txn.now.producer_epoch)

        return fence

    replace("urteil.broker.transactions.state:Transaction.fence", make)
