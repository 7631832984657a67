"""Applies a smaller ISR locally and sends no AlterPartition."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader commits without a slow follower that ZooKeeper still counts as in sync"
MODELS = "an ISR that is shrunk in memory without the controller's write"
SCENARIO = "lagging-successor"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def maybe_shrink(partition: Any, now_ms: float) -> None:
            propose, was = partition.propose, partition.isr
            partition.propose = lambda _partition: None
            try:
                original(partition, now_ms)
            finally:
                partition.propose = propose
            proposed = partition.isr.proposed
            if partition.isr is not was and proposed is not None:
                mark.hit()
                partition.isr = type(was)(proposed)

        return maybe_shrink

    replace("urteil.broker.replication.partition:Partition.maybe_shrink", make)
