"""Sends the markers at once, and again after the decision is stored."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a coordinator sends the markers of a commit before its decision is stored"
MODELS = "a two-phase commit whose decision is not durable before its second phase"
SCENARIO = "lost-decision"
GUARANTEE = "torn_txn"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def decide(
            coordinator: Any, shard: Any, transactional_id: str, txn: Any, step: Any
        ) -> Any:
            from urteil.broker.transactions.marker_sender import Marker
            from urteil.broker.transactions.transaction import TxnState

            if step.state is TxnState.PREPARE_COMMIT:
                mark.hit()
                marker = Marker(
                    producer_id=step.producer_id,
                    producer_epoch=step.producer_epoch,
                    commit=True,
                    coordinator_epoch=shard.leader_epoch,
                )
                hurried = coordinator._markers.write(
                    marker, step.partitions, lambda: True, lambda _: None
                )
                coordinator._tasks.spawn(hurried)
            return await original(coordinator, shard, transactional_id, txn, step)

        return decide

    replace("urteil.broker.transactions.coordinator:TransactionCoordinator._decide", make)
