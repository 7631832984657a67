"""Ignores the high watermark and the start of the leader's epoch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a follower joins the ISR with its first fetch, however far it lags"
MODELS = "KAFKA-7128: ISR expansion below the high watermark and the start of the leader's epoch"
SCENARIO = "slow-return"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def maybe_expand(partition: Any, follower: Any) -> None:
            here = partition.isr.in_flight or follower.broker_id in partition.isr.committed
            if here or not partition.eligible(follower.broker_id):
                return
            if follower.end_offset < partition.log.high_watermark:
                mark.hit()
            partition.isr = partition.isr.expand(follower.broker_id)
            partition.propose(partition)

        return maybe_expand

    replace("urteil.broker.replication.partition:Partition._maybe_expand", make)
