"""A transaction takes in partitions of which the coordinator alone knows."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "AddPartitionsToTxn is answered when the coordinator has written it, with acks=1"
MODELS = "the transactions' log written with acks=1 but for decisions"
SCENARIO = "lost-additions"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    """What is ongoing waits for no replica."""

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
