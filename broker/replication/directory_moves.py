"""Moves of logs between directories of this broker: AlterReplicaLogDirs (KIP-113)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from urteil.broker.replication.future_replica import FutureReplica
from urteil.broker.replication.partition import Partition
from urteil.broker.wire.errors import ErrorCode

if TYPE_CHECKING:
    from urteil.broker.base.clock import Clock
    from urteil.broker.log.log_manager import LogManager

log = logging.getLogger("moves")

TopicPartition = tuple[str, int]
Hosted = Callable[[str, int], tuple[Partition | None, ErrorCode]]

RETRY_MS = 1000.0
LONGEST_PAUSE_MS = 1000.0
LONGEST_NAME = 255
SUFFIX = ".0123456789abcdef0123456789abcdef-future"
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


class DirectoryMoves:
    """Copies one log at a time, in name order, at most at the throttle's rate.

    `properties` are the broker's current ones: the throttle may change during a copy.
    """

    def __init__(
        self,
        logs: LogManager,
        hosted: Hosted,
        clock: Clock,
        properties: Mapping[str, str],
        max_bytes: int,
    ) -> None:
        self._logs = logs
        self._hosted = hosted
        self._clock = clock
        self._properties = properties
        self._max_bytes = max_bytes
        self._moving: dict[TopicPartition, FutureReplica] = {}
        self._last_step = (0.0, 0)  # its time, the bytes copied
        self._task: asyncio.Task[None] | None = None

    # -- starting and ending moves --------------------------------------------------------------

    def alter(self, topic: str, partition: int, path: str) -> ErrorCode:
        """Begin to move the replica to the directory `path`; a replica that is not hosted yet will
        be created there (`ReplicaManager.alterReplicaLogDirs`)."""
        target = Path(path)
        if len(f"{topic}-{partition}{SUFFIX}") > LONGEST_NAME:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if path not in [str(each) for each in self._logs.paths]:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not self._logs.is_online(target):
            return ErrorCode.KAFKA_STORAGE_ERROR
        hosted, error = self._hosted(topic, partition)
        if error is ErrorCode.KAFKA_STORAGE_ERROR:
            return error
        try:
            if hosted is not None and hosted.future is not None:
                if hosted.future.directory.parent == target:
                    return ErrorCode.NONE
                self.cancel(hosted)
                self._logs.delete_future(topic, partition)
            self._logs.set_preferred_directory(topic, partition, target)
            if hosted is None:
                is_elsewhere = error is ErrorCode.NOT_LEADER_OR_FOLLOWER
                return ErrorCode.REPLICA_NOT_AVAILABLE if is_elsewhere else error
            return self._begin(hosted, target)
        except OSError as failure:
            log.error("%s cannot move to %s: %s", hosted, path, failure)
            return ErrorCode.KAFKA_STORAGE_ERROR

    def _begin(self, partition: Partition, target: Path) -> ErrorCode:
        if partition.log.directory.parent == target:
            return ErrorCode.NONE
        if self._logs.offline:  # an offline directory may already have a copy
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._logs.create_future(partition.topic, partition.partition, target)
        log.info("%s moves from %s to %s", partition, partition.log.directory.parent, target)
        self.resume(partition)
        return ErrorCode.NONE

    def resume(self, partition: Partition) -> None:
        """Continue with the existing copy, if there is one."""
        key = (partition.topic, partition.partition)
        partition.future = self._logs.future(*key)
        if partition.future is None:
            return
        self._moving[key] = FutureReplica(partition)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self, partition: Partition) -> None:
        """Stop copying; the copy stays where it is."""
        self._moving.pop((partition.topic, partition.partition), None)
        partition.future = None

    def drop_directory(self, path: Path) -> None:
        """Cancel the moves to a failed directory."""
        for move in list(self._moving.values()):
            future = move.partition.future
            if future is not None and future.directory.parent == path:
                self.cancel(move.partition)

    # -- copying --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while self._moving:
            now_ms = self._clock.monotonic_ms()
            ready = [key for key, move in self._moving.items() if move.retry_at_ms <= now_ms]
            pause_ms = self._throttled_ms(now_ms)
            if pause_ms > 0:
                await asyncio.sleep(min(pause_ms, LONGEST_PAUSE_MS) / 1000)
            elif ready:
                self._advance(self._moving[min(ready)], now_ms)
                await asyncio.sleep(0)  # client requests run here
            else:
                first_ms = min(move.retry_at_ms for move in self._moving.values())
                await asyncio.sleep((first_ms - now_ms) / 1000)

    def _throttled_ms(self, now_ms: float) -> float:
        """The remaining pause in ms; computed repeatedly, because the throttle may change."""
        limit = max(1.0, float(self._properties.get(THROTTLE) or "inf"))
        when_ms, copied = self._last_step
        return when_ms + copied / limit * 1000 - now_ms

    def _advance(self, move: FutureReplica, now_ms: float) -> None:
        try:
            copied = move.copy_batches(self._max_bytes, self._clock.now_ms())
        except Exception:  # a bug: the other moves must not be affected
            log.exception("%s: its copy is retried later", move.partition)
            move.retry_at_ms = now_ms + RETRY_MS
            return
        self._last_step = (now_ms, copied)
        if move.last_error is not ErrorCode.NONE:
            move.retry_at_ms = now_ms + RETRY_MS
            log.error("%s: its copy is retried later: %s", move.partition, move.last_error.name)
        elif move.is_caught_up:
            self._finish(move, now_ms)

    def _finish(self, move: FutureReplica, now_ms: float) -> None:
        partition = move.partition
        if not self._logs.is_promotable(partition.topic, partition.partition):
            move.retry_at_ms = now_ms + RETRY_MS
            return
        del self._moving[partition.topic, partition.partition]
        assert partition.future is not None
        try:
            move.adopt_log_state()
            partition.log = self._logs.promote_future(partition.topic, partition.partition)
        except OSError as failure:
            partition.future.fail(failure)
        else:
            log.info("%s is now in %s", partition, partition.log.directory.parent)
        partition.future = None
        partition.on_low_watermark.notify()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
