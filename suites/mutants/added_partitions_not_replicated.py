"""Writes the coordinator's record of an ongoing transaction with acks=1."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "AddPartitionsToTxn is answered before the coordinator's record is replicated"
MODELS = "a transaction log that is written with acks=1 except for decisions"
SCENARIO = "lost-additions"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def append(ids: Any, shard: Any, transactional_id: str, step: Any) -> Any:
            if step is not None and step.state.name == "ONGOING":
                mark.hit()
                replicas = ids._replicas

                def hasty(timeout_ms: int, _: int, *rest: Any, **how: Any) -> Any:
                    return replicas.append(timeout_ms, 1, *rest, **how)

                ids = copy(ids)
                ids._replicas = SimpleNamespace(append=hasty)
            return await original(ids, shard, transactional_id, step)

        return append

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator._append", make)
