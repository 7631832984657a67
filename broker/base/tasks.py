"""Work that goes on beside the requests of one part of the broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine


class Tasks:
    """Tasks that nobody awaits; one that fails is logged by the name of its part."""

    def __init__(self, part: str) -> None:
        self._log = logging.getLogger(part)
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Begin it now; it is kept until it ends."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def cancel(self) -> None:
        """End all of them."""
        for task in self._running:
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("a task failed", exc_info=task.exception())
