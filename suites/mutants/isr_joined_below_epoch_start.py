"""Ignores the start offset of the leader's epoch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a follower joins the ISR before it has reached the start of the leader's epoch"
MODELS = "KAFKA-7128"
SCENARIO = "untold-successor"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def maybe_expand(partition: Any, follower: Any) -> Any:
            start = partition.epoch_start_offset
            if follower.end_offset < start and follower.broker_id not in partition.isr.committed:
                if follower.end_offset >= partition.log.high_watermark:
                    mark.hit()
                partition.epoch_start_offset = 0
            try:
                return original(partition, follower)
            finally:
                partition.epoch_start_offset = start

        return maybe_expand

    replace("urteil.broker.replication.partition:Partition._maybe_expand", make)
