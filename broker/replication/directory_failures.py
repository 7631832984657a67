"""A log directory fails: its partitions go offline, the controller is told, and no more.

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
    """`halt(error)` is called when the last directory failed; it does not come back."""

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
        """The broker is registered: tell of directories that were offline from the start.

        What fails later is handled once the loop is free, whichever thread it failed on.
        """
        loop = asyncio.get_running_loop()

        def soon() -> None:
            loop.call_soon_threadsafe(self.handle)

        self._logs.on_failure = soon
        self.handle()
        if self._logs.offline:
            self._notify()

    def handle(self) -> None:
        """Take directories offline that failed."""
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
        task = asyncio.get_running_loop().create_task(self._tell_controller())
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)

    async def _tell_controller(self) -> None:
        """Twice does no harm: the controller then asks twice which partitions are offline."""
        data = znodes.encode_log_dir_event(self._broker_id)
        while True:
            try:
                await self._zk.create(EVENT_PATH, data, sequence=True)
                return
            except LOST as why:
                log.info("the controller does not know of the failed directory yet: %s", why)
                await asyncio.sleep(RETRY_S)

    def close(self) -> None:
        for task in self._notices:
            task.cancel()
