"""Omits the first partition of each decision that is read from the log."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "after a takeover one partition of a decided transaction never gets its marker"
MODELS = "a decision read from the log without the first of its partitions"
SCENARIO = "unsent-markers"
GUARANTEE = "hanging_txn"


def apply(mark: Mark) -> None:
    deciding: set[int] = set()

    def own(original: Function) -> Function:
        async def decide(ids: Any, shard: Any, transactional_id: str, txn: Any, step: Any) -> Any:
            deciding.add(id(txn))
            try:
                return await original(ids, shard, transactional_id, txn, step)
            finally:
                deciding.discard(id(txn))

        return decide

    def complete(original: Function) -> Function:
        def begin_completion(ids: Any, shard: Any, transactional_id: str, txn: Any) -> None:
            if id(txn) not in deciding and len(txn.now.partitions) > 1:
                mark.hit()
                rest = frozenset(sorted(txn.now.partitions)[1:])
                txn.now = changed(txn.now, partitions=rest)
            original(ids, shard, transactional_id, txn)

        return begin_completion

    where = "urteil.broker.transactions.coordinator:TransactionCoordinator."
    replace(where + "_decide", own)
    replace(where + "_begin_completion", complete)
