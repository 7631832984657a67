"""Counts each follower with a pending fetch as having the leader's complete log."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the high watermark counts records that were sent to followers, before they have them"
MODELS = "a high watermark advanced by the answer instead of the next fetch offset"
SCENARIO = "last-follower"
GUARANTEE = "lost_write"
PARTITION = "urteil.broker.replication.partition:Partition"


def apply(mark: Mark) -> None:
    def count_as_sent(partition: Any, now_ms: float) -> None:
        end = partition.log.log_end_offset
        for follower in partition.followers.values():
            waits = follower.end_offset == follower.last_fetch_leader_end
            if waits and 0 <= follower.end_offset < end:
                mark.hit()
                follower.end_offset = end
        if partition._advance_high_watermark(now_ms):
            partition.on_committed.notify()

    def make_append(original: Function) -> Function:
        def append(
            partition: Any, data: Any, acks: int, wall_ms: int, now_ms: float, **given: Any
        ) -> Any:
            result = original(partition, data, acks, wall_ms, now_ms, **given)
            if partition.is_leader:
                count_as_sent(partition, now_ms)
            return result

        return append

    def make_fetched(original: Function) -> Function:
        def record_follower_fetch(
            partition: Any,
            broker_id: int,
            fetch_offset: int,
            start_offset: int,
            now_ms: float,
            broker_epoch: int = -1,
        ) -> None:
            original(partition, broker_id, fetch_offset, start_offset, now_ms, broker_epoch)
            follower = partition.followers[broker_id]
            follower.end_offset = partition.log.log_end_offset
            if partition._advance_high_watermark(now_ms):
                partition.on_committed.notify()

        return record_follower_fetch

    replace(f"{PARTITION}.append", make_append)
    replace(f"{PARTITION}.record_follower_fetch", make_fetched)
