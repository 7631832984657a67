"""Applies a proposed ISR at once, with no request in flight."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader applies a smaller ISR before the controller has accepted it"
MODELS = "an ISR changed before it is persisted, against KIP-497's maximal ISR"
SCENARIO = "lone-leader"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
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
