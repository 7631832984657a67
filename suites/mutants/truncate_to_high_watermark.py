"""Truncates a follower to its high watermark at the begin of each epoch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a follower truncates to its own high watermark, which lags behind the committed records"
MODELS = "KAFKA-1211 (before KIP-101)"
SCENARIO = "epoch-truncation"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def follow(following: Any, partition: Any) -> None:
            original(following, partition)
            if partition.log.high_watermark < partition.log.log_end_offset:
                mark.hit()
                partition.log.truncate_to(partition.log.high_watermark)

        return follow

    replace("urteil.broker.replication.followed_partition:FollowedPartition.__init__", make)
