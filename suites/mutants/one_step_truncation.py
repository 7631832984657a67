"""Truncates to the leader's end of the older epoch, then sends no epoch again."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a follower with an epoch that its leader never had keeps part of its records"
MODELS = "KAFKA-6361 (before KIP-279): fast leader failover can lead to log divergence"
SCENARIO = "fast-failover"
GUARANTEE = "replica_divergence"
FOLLOWING = "urteil.broker.replication.followed_partition:FollowedPartition"


def apply(mark: Mark) -> None:
    settled: dict[int, Any] = {}

    def cut(original: Function) -> Function:
        def truncation_point(log: Any, leader_epoch: int, leader_end_offset: int) -> int:
            point = int(original(log, leader_epoch, leader_end_offset))
            if leader_epoch < 0 or leader_end_offset < 0:
                return point
            once = min(leader_end_offset, int(log.log_end_offset))
            if once > point:
                mark.hit()
            return once

        return truncation_point

    def take(original: Function) -> Function:
        def take_once(following: Any, data: Any, wall_ms: int) -> Any:
            error = original(following, data, wall_ms)
            diverging = data.diverging_epoch
            if diverging.end_offset >= 0 or diverging.epoch >= 0:
                settled[id(following)] = following
            return error

        return take_once

    def position(original: Function) -> Function:
        def fetch_epoch(following: Any) -> Any:
            end, leader_epoch, last_epoch, start = original(following)
            if settled.get(id(following)) is following:
                last_epoch = -1
            return end, leader_epoch, last_epoch, start

        return fetch_epoch

    replace("urteil.broker.replication.followed_partition:truncation_point", cut)
    replace(f"{FOLLOWING}.take", take)
    replace(f"{FOLLOWING}.position", position)
