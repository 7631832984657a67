"""Remote time: how long a request waits for other nodes, as Kafka's metrics count it. Handlers mark
such waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")


class Waits:
    """The remote time of one connection, which `task` serves: `s` seconds in total."""

    __slots__ = ("s", "task")

    def __init__(self) -> None:
        self.s = 0.0
        self.task: asyncio.Task[None] | None = None


_of_this_task: ContextVar[Waits | None] = ContextVar("waits", default=None)


def begin(waits: Waits) -> None:
    """Add to `waits` everything that this task awaits through `await_remote`."""
    waits.task = asyncio.current_task()
    _of_this_task.set(waits)


async def await_remote(awaited: Awaitable[Result]) -> Result:
    """Await an event that a request depends on, and count the time.

    A task that a request started inherits the variable; its waits do not count.
    """
    waits = _of_this_task.get()
    if waits is None or waits.task is not asyncio.current_task():
        return await awaited
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        return await awaited
    finally:
        waits.s += loop.time() - began_s
