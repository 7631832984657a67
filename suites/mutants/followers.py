"""Partitions as follower, moves between directories, failed directories."""

from __future__ import annotations

import dataclasses
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import LOG_DIRECTORIES

FOLLOWING = "urteil.broker.replication.followed_partition:FollowedPartition"


@mutant(
    about="a follower truncates to its own high watermark, which lags behind the committed records",
    models="KAFKA-1211 (before KIP-101)",
    scenario="epoch-truncation",
    guarantee="lost_write",
)
def truncate_to_high_watermark(mark: Mark) -> None:
    """Truncates a follower to its high watermark at the begin of each epoch."""

    def make(original: Function) -> Function:
        def follow(following: Any, partition: Any) -> None:
            original(following, partition)
            if partition.log.high_watermark < partition.log.log_end_offset:
                mark.hit()
                partition.log.truncate_to(partition.log.high_watermark)

        return follow

    replace("urteil.broker.replication.followed_partition:FollowedPartition.__init__", make)


@mutant(
    about="a deposed leader keeps its unreplicated tail and appends the new leader's records "
    "behind it",
    models="truncation by leader epoch left out (KIP-101, KIP-279)",
    scenario="cut-crash",
    guarantee="replica_divergence",
)
def no_truncation_on_new_epoch(mark: Mark) -> None:
    """Removes the last epoch from a follower's fetch requests."""

    def make(original: Function) -> Function:
        def request(following: Any, max_bytes: int) -> Any:
            request = original(following, max_bytes)
            if request.last_fetched_epoch not in (-1, request.current_leader_epoch):
                mark.hit()
            return dataclasses.replace(request, last_fetched_epoch=-1)

        return request

    replace("urteil.broker.replication.followed_partition:FollowedPartition.request", make)


@mutant(
    about="a follower with an epoch that its leader never had keeps part of its records",
    models="KAFKA-6361 (before KIP-279): fast leader failover can lead to log divergence",
    scenario="fast-failover",
    guarantee="replica_divergence",
)
def one_step_truncation(mark: Mark) -> None:
    """Truncates to the leader's end of the older epoch, then sends no epoch again."""
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
    replace(f"{FOLLOWING}.apply_response", take)
    replace(f"{FOLLOWING}.position", position)


@mutant(
    about="a replica that moves to another log directory loses its newest records",
    models="KIP-113: a swap that does not check whether the copy is complete",
    scenario="move-directories",
    guarantee="lost_write",
    unsimulated=LOG_DIRECTORIES,
)
def moved_log_lacks_tail(mark: Mark) -> None:
    """Counts a copy as complete as soon as it agrees with a part of its log."""

    def make(original: Any) -> Any:
        def is_caught_up(copy: Any) -> bool:
            if original.fget(copy):
                return True
            log, future = copy.partition.log, copy.partition.future
            if future is None or copy._generation != log.generation or not future.log_end_offset:
                return False
            mark.hit()
            return True

        return property(is_caught_up)

    replace("urteil.broker.replication.future_replica:FutureReplica.is_caught_up", make)


@mutant(
    about="a broker with a failed log directory does not report it, and stays leader of its "
    "partitions",
    models="KIP-112: a log directory failure that does not reach the controller",
    scenario="disk-gone",
    guarantee="no_progress",
    unsimulated=LOG_DIRECTORIES,
)
def log_dir_failure_unreported(mark: Mark) -> None:
    """Sends no notification of the failure to the controller."""

    def make(original: Function) -> Function:
        async def report(failures: Any) -> None:
            mark.hit()

        return report

    replace(
        "urteil.broker.replication.directory_failures:DirectoryFailures._notify_controller", make
    )


@mutant(
    about="DeleteRecords is answered when the leader's log has been cut, before its "
    "followers' logs are",
    models="an answer that skips the purgatory",
    scenario="deleted-once",
    guarantee="undeleted_records",
)
def delete_records_not_replicated(mark: Mark) -> None:
    """Answers DeleteRecords without looking at the followers' log start offsets."""
    from urteil.broker.replication.record_deletion import DeletionResult
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def begin(deletion: Any, key: Any, offset: int) -> None:
            original(deletion, key, offset)
            if key in deletion._waiting:
                mark.hit()
                _, target_offset = deletion._waiting.pop(key)
                deletion._answers[key] = DeletionResult(ErrorCode.NONE, target_offset)

        return begin

    replace("urteil.broker.replication.record_deletion:RecordDeletion._begin", make)
