"""What a broker has of the machine it runs on: disks, ZooKeeper, a thread, and its own end.

Everything else a broker does is asyncio and is told the time and the generator of randomness. A
simulation passes a machine of its own (`tests/simulation`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from urteil.broker.base.offload import Offload
from urteil.broker.log.storage import Storage
from urteil.broker.zookeeper.session import Session


class Background(Protocol):
    """Runs jobs one after another, as an executor with one thread does."""

    def submit(self, job: Callable[[], Any], /) -> Any: ...

    def shutdown(self) -> None:
        """Return when all jobs are done."""


class Machine:
    """The real one."""

    storage: Storage = Storage()

    def session(self, connect: str, timeout_ms: int, resolve: Callable[[str], str]) -> Session:
        """A ZooKeeper session, not connected yet."""
        return Session(connect, timeout_ms, resolve)

    def background(self) -> Background:
        """For what waits for the disk."""
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="sync")

    def offload(self, threads: int) -> Offload:
        """For what takes long on account of a client's input."""
        return Offload(ThreadPoolExecutor(max_workers=threads, thread_name_prefix="work"))

    def end(self) -> None:
        """End the process at once."""
        logging.shutdown()
        os._exit(1)
