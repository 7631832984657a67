"""A coordinator of transactions that lost its office goes on by what it knew when it is back."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "a coordinator keeps its transactions when another one takes over, and has the old ones later"
)
MODELS = "a transaction shard that is not unloaded at resignation, so that none is loaded later"
SCENARIO = "transactions-moved"
GUARANTEE = "hanging_txn"

DECISIONS = "__transaction_state"


def apply(mark: Mark) -> None:
    """It does not hear that it leads a partition of the transactions' topic no more."""

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
