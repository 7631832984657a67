"""Background tasks of one part of the broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine


class Tasks:
    """Tasks without an awaiter. A failure is logged under the name of the part."""

    def __init__(self, part: str) -> None:
        self._log = logging.getLogger(part)
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start a task and keep a reference until it ends."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._running.add(task)
        task.add_done_callback(self._log_failure)
        return task

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in self._running:
            task.cancel()

    def _log_failure(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("a task failed", exc_info=task.exception())
