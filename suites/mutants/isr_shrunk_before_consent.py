"""A leader counts its smaller ISR as soon as it has asked the controller for it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader takes a follower out of the ISR that it counts before the controller has"
MODELS = "the ISR changed before it is persisted; what KIP-497 calls the maximal ISR"
SCENARIO = "lone-leader"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    """What was proposed holds at once, and nothing is in flight."""

    def make(original: Function) -> Function:
        def maybe_shrink(partition: Any, now_ms: float) -> None:
            original(partition, now_ms)
            isr = partition.isr
            if isr.in_flight and len(isr.proposed) < len(isr.committed):
                mark.hit()
                partition.isr = type(isr)(isr.proposed)
                original(partition, now_ms)

        return maybe_shrink

    replace("urteil.broker.replication.partition:Partition.maybe_shrink", make)
