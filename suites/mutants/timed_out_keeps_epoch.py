"""Bumps no epoch when a transaction times out."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a transaction that timed out is aborted, and its producer is not fenced"
MODELS = "KIP-98: a coordinator's abort that does not bump the epoch"
SCENARIO = "transactional-paused"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def fence(txn: Any) -> Any:
            mark.hit()
            return changed(original(txn), producer_epoch=txn.now.producer_epoch)

        return fence

    replace("urteil.broker.transactions.transaction:Transaction.fence", make)
