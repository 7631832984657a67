"""Failure of a log directory: its partitions go offline, and the controller is notified.

Source: `LogDirFailureHandler` and `ReplicaManager.handleLogDirFailure` of Apache Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import LOST

if TYPE_CHECKING:
    from urteil.broker.log.log_manager import LogManager
    from urteil.broker.replication.replica_manager import ReplicaManager
    from urteil.broker.zookeeper.session import Session

log = logging.getLogger("broker")

EVENT_PATH = f"{znodes.LOG_DIR_EVENTS}/log_dir_event_"
RETRY_S = 1.0


class DirectoryFailures:
    """Handles failed directories. `halt(error)` runs after the last one has failed and does not
    return."""

    def __init__(
        self,
        logs: LogManager,
        replicas: ReplicaManager,
        zk: Session,
        broker_id: int,
        halt: Callable[[OSError], None],
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._zk = zk
        self._broker_id = broker_id
        self._halt = halt
        self._notices: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Notify the controller of directories that were offline at the start; handle later
        failures on the loop, whichever thread they occur on."""
        loop = asyncio.get_running_loop()

        def schedule_handling() -> None:
            loop.call_soon_threadsafe(self.handle)

        self._logs.on_failure = schedule_handling
        self.handle()
        if self._logs.offline:
            self._notify()

    def handle(self) -> None:
        """Take failed directories offline."""
        for directory in self._logs.failed_directories():
            error = directory.health.failure
            assert error is not None
            if len(self._logs.directories) == 1:
                self._halt(error)
            lost = self._replicas.drop_directory(directory.path)
            self._logs.take_offline(directory)
            log.error("%s is offline: %s; partitions: %d", directory.path, error, len(lost))
            self._notify()

    def _notify(self) -> None:
        task = asyncio.get_running_loop().create_task(self._notify_controller())
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _notify_controller(self) -> None:
        """Notify the controller; duplicates are harmless."""
        data = znodes.encode_log_dir_event(self._broker_id)
        while True:
            try:
                await self._zk.create(EVENT_PATH, data, sequence=True)
                return
            except LOST as why:
                log.info("the controller is not notified of the failed directory yet: %s", why)
                await asyncio.sleep(RETRY_S)

    def close(self) -> None:
        for task in self._notices:
            task.cancel()
