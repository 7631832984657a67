"""AlterReplicaLogDirs: logs on their way from one directory of this broker to another (KIP-113)."""

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
    """One copy at a time, in the order of their names, no faster than the throttle allows.

    `properties` are the broker's in effect: the throttle may change while a copy is made.
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
        self._last_step = (0.0, 0)  # when it was, and how many bytes it copied
        self._task: asyncio.Task[None] | None = None

    # -- what is moved --------------------------------------------------------------------------

    def alter(self, topic: str, partition: int, path: str) -> ErrorCode:
        """Let the replica lie in the directory `path`; one that is not here is made there later
        (`ReplicaManager.alterReplicaLogDirs`)."""
        target = Path(path)
        if len(f"{topic}-{partition}{SUFFIX}") > LONGEST_NAME:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if path not in [str(each) for each in self._logs.paths]:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not self._logs.is_online(target):
            return ErrorCode.KAFKA_STORAGE_ERROR
        found, error = self._hosted(topic, partition)
        if error is ErrorCode.KAFKA_STORAGE_ERROR:
            return error
        try:
            if found is not None and found.future is not None:
                if found.future.directory.parent == target:
                    return ErrorCode.NONE
                self.cancel(found)
                self._logs.delete_future(topic, partition)
            self._logs.set_preferred_directory(topic, partition, target)
            if found is None:
                moved = error is ErrorCode.NOT_LEADER_OR_FOLLOWER
                return ErrorCode.REPLICA_NOT_AVAILABLE if moved else error
            return self._begin(found, target)
        except OSError as failure:
            log.error("%s cannot move to %s: %s", found, path, failure)
            return ErrorCode.KAFKA_STORAGE_ERROR

    def _begin(self, partition: Partition, target: Path) -> ErrorCode:
        if partition.log.directory.parent == target:
            return ErrorCode.NONE
        if self._logs.offline:  # a copy may lie there already
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._logs.create_future(partition.topic, partition.partition, target)
        log.info("%s moves from %s to %s", partition, partition.log.directory.parent, target)
        self.resume(partition)
        return ErrorCode.NONE

    def resume(self, partition: Partition) -> None:
        """Go on with the copy that there is, if there is one."""
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
        """Copies on their way there are lost."""
        for one in list(self._moving.values()):
            future = one.partition.future
            if future is not None and future.directory.parent == path:
                self.cancel(one.partition)

    # -- copying --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while self._moving:
            now_ms = self._clock.monotonic_ms()
            ready = [key for key, one in self._moving.items() if one.retry_at_ms <= now_ms]
            pause_ms = self._throttled_ms(now_ms)
            if pause_ms > 0:
                await asyncio.sleep(min(pause_ms, LONGEST_PAUSE_MS) / 1000)
            elif ready:
                self._advance(self._moving[min(ready)], now_ms)
                await asyncio.sleep(0)  # the clients' requests come in between
            else:
                first_ms = min(one.retry_at_ms for one in self._moving.values())
                await asyncio.sleep((first_ms - now_ms) / 1000)

    def _throttled_ms(self, now_ms: float) -> float:
        """How long not to copy; looked at again and again, for the throttle may change."""
        limit = max(1.0, float(self._properties.get(THROTTLE) or "inf"))
        when_ms, copied = self._last_step
        return when_ms + copied / limit * 1000 - now_ms

    def _advance(self, one: FutureReplica, now_ms: float) -> None:
        try:
            copied = one.step(self._max_bytes, self._clock.now_ms())
        except Exception:  # a bug: the other moves shall not suffer for it
            log.exception("%s: its copy waits", one.partition)
            one.retry_at_ms = now_ms + RETRY_MS
            return
        self._last_step = (now_ms, copied)
        if one.last_error is not ErrorCode.NONE:
            one.retry_at_ms = now_ms + RETRY_MS
            log.error("%s: its copy waits: %s", one.partition, one.last_error.name)
        elif one.is_caught_up:
            self._finish(one, now_ms)

    def _finish(self, one: FutureReplica, now_ms: float) -> None:
        partition = one.partition
        if not self._logs.is_promotable(partition.topic, partition.partition):
            one.retry_at_ms = now_ms + RETRY_MS
            return
        del self._moving[partition.topic, partition.partition]
        assert partition.future is not None
        try:
            one.inherit()
            partition.log = self._logs.promote_future(partition.topic, partition.partition)
        except OSError as failure:
            partition.future.fail(failure)
        else:
            log.info("%s lies in %s now", partition, partition.log.directory.parent)
        partition.future = None
        partition.on_low_watermark.notify()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
