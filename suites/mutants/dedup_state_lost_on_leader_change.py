"""Clears the producer state of a log when its broker becomes leader."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new leader forgets the sequences of idempotent producers and appends a retry again"
MODELS = "Redpanda #3039"
SCENARIO = "slow-crash"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def become_leader(partition: Any, state: Any, now_ms: float) -> bool:
            is_new = bool(original(partition, state, now_ms))
            if is_new:
                forget(partition.log, mark)
            return is_new

        return become_leader

    def forget(log: Any, mark: Mark) -> None:
        producers = log.producers
        if producers.entries:
            mark.hit()
            producers.reset(log.log_end_offset)

    replace("urteil.broker.replication.partition:Partition.become_leader", make)
