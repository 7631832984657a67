"""The environment of a broker: disks, ZooKeeper sessions, threads and the end of the process.

Everything else in a broker is asyncio code that receives its clock and its random generator. A
simulation passes an environment of its own (`suites/simulation`).
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
    """Runs jobs in order, like an executor with one thread."""

    def submit(self, job: Callable[[], Any], /) -> Any: ...

    def shutdown(self) -> None:
        """Return once all jobs are done."""


class Environment:
    """The environment of a real process."""

    storage: Storage = Storage()

    def session(self, connect: str, timeout_ms: int, resolve: Callable[[str], str]) -> Session:
        """Return a ZooKeeper session that is not connected yet."""
        return Session(connect, timeout_ms, resolve)

    def background(self) -> Background:
        """Return a thread for work that waits for the disk."""
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="sync")

    def offload(self, threads: int) -> Offload:
        """Return threads for work that grows with a client's input."""
        return Offload(ThreadPoolExecutor(max_workers=threads, thread_name_prefix="work"))

    def end(self) -> None:
        """End the process at once."""
        logging.shutdown()
        os._exit(1)
