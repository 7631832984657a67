"""Counts every required offset as replicated."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all is answered at the append, before any follower has the records"
MODELS = "acks=all treated as acks=1"
SCENARIO = "cut-crash"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def acknowledged(partition: Any, required_offset: int) -> Any:
            result = original(partition, required_offset)
            if result is not None:
                return result
            mark.hit()
            return original(partition, partition.log.high_watermark)

        return acknowledged

    replace("urteil.broker.replication.partition:Partition.acknowledged", make)
