"""Reports no partition as below min.insync.replicas."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Mark, replace

ABOUT = "acks=all is acknowledged by a leader whose ISR is below min.insync.replicas"
MODELS = "min.insync.replicas not enforced"
SCENARIO = "min-isr"
GUARANTEE = "ack_below_min_isr"


def apply(mark: Mark) -> None:
    def make(original: Any) -> Any:
        def is_under_min_isr(partition: Any) -> bool:
            if original.fget(partition):
                mark.hit()
            return False

        return property(is_under_min_isr)

    replace("urteil.broker.replication.partition:Partition.is_under_min_isr", make)
