"""Stores the completion of a transaction only where the decision was made."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator sends the markers of a decided transaction and never completes it"
MODELS = "KAFKA-12671: InitProducerId answers CONCURRENT_TRANSACTIONS for ever"
SCENARIO = "unsent-markers"
GUARANTEE = "hanging_txn"
COORDINATOR = "urteil.broker.transactions.coordinator:TransactionCoordinator"


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    decided: set[tuple[str, int]] = set()

    def make_decide(original: Function) -> Function:
        async def decide(coordinator: Any, shard: Any, tid: str, txn: Any, step: Any) -> Any:
            decided.add((tid, step.producer_epoch))
            return await original(coordinator, shard, tid, txn, step)

        return decide

    def make_append(original: Function) -> Function:
        async def append(coordinator: Any, shard: Any, tid: str, step: Any) -> Any:
            is_end = step is not None and step.state.name.startswith("COMPLETE")
            if is_end and (tid, step.producer_epoch) not in decided:
                mark.hit()
                return ErrorCode.NOT_COORDINATOR
            return await original(coordinator, shard, tid, step)

        return append

    replace(f"{COORDINATOR}._decide", make_decide)
    replace(f"{COORDINATOR}._append", make_append)
