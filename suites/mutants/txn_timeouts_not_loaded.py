"""Sets no timeout for transactions that are loaded from the log."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator never aborts the transactions that were open at its takeover"
MODELS = "timers that only AddPartitionsToTxn sets"
SCENARIO = "transactions-moved"
GUARANTEE = "hanging_txn"


def apply(mark: Mark) -> None:
    loaded: dict[int, Any] = {}

    def make_replay(original: Function) -> Function:
        def replay(shard: Any, key: Any, value: Any) -> None:
            original(shard, key, value)
            loaded.update((id(txn.now), txn.now) for txn in shard.transactions.values())

        return replay

    def make_overdue(original: Function) -> Function:
        def is_overdue(txn: Any, now_ms: int) -> bool:
            over = original(txn, now_ms)
            if over and loaded.get(id(txn.now)) is txn.now:
                mark.hit()
                return False
            return bool(over)

        return is_overdue

    replace("urteil.broker.transactions.shard:Shard._replay", make_replay)
    replace("urteil.broker.transactions.transaction:Transaction.is_overdue", make_overdue)
