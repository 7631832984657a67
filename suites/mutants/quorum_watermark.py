"""Computes the high watermark from min.insync.replicas members of the ISR."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records are committed when min.insync.replicas of the ISR have them, instead of all"
MODELS = "min.insync.replicas treated as a quorum size"
SCENARIO = "cut-successor"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def advance(partition: Any, now_ms: float) -> bool:
            is_raised = bool(original(partition, now_ms))
            if not partition.is_leader or partition.is_under_min_isr:
                return is_raised
            members = [
                one.end_offset
                for one in partition.followers.values()
                if one.broker_id in partition.isr.committed
            ]
            ends = sorted([partition.log.log_end_offset, *members], reverse=True)
            enough = ends[partition.effective_min_isr - 1]
            if enough <= partition.log.high_watermark:
                return is_raised
            mark.hit()
            partition.log.update_high_watermark(enough)
            return True

        return advance

    replace("urteil.broker.replication.partition:Partition._advance_high_watermark", make)
