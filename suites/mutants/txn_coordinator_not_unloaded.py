"""Ignores the loss of a partition of __transaction_state."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a deposed transaction coordinator keeps its transactions and uses them when it returns"
MODELS = "a transaction shard that is not unloaded at resignation"
SCENARIO = "transactions-moved"
GUARANTEE = "hanging_txn"

DECISIONS = "__transaction_state"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def changed(ids: Any, topic: str, partition: int, is_leader: bool, epoch: int) -> None:
            if topic == DECISIONS and partition in ids._shards and not is_leader:
                mark.hit()
            else:
                original(ids, topic, partition, is_leader, epoch)

        return changed

    replace(
        "urteil.broker.transactions.coordinator:TransactionCoordinator.leadership_changed", make
    )
