"""acks=all is answered as soon as the leader appended."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all is answered at the append, before any follower has the records"
MODELS = "acks=all treated as acks=1"
SCENARIO = "cut-crash"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    """The leader takes every required offset for replicated."""

    def make(original: Function) -> Function:
        def acknowledged(partition: Any, required_offset: int) -> Any:
            told = original(partition, required_offset)
            if told is not None:
                return told
            mark.hit()
            return original(partition, partition.log.high_watermark)

        return acknowledged

    replace("urteil.broker.replication.partition:Partition.acknowledged", make)
