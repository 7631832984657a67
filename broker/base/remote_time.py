"""How long requests wait for others: what Kafka calls the remote time, and a handler declares."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")


class Waits:
    """Of the requests of one connection, which its `task` serves: `s` seconds, all together."""

    __slots__ = ("s", "task")

    def __init__(self) -> None:
        self.s = 0.0
        self.task: asyncio.Task[None] | None = None


_of_this_task: ContextVar[Waits | None] = ContextVar("waits", default=None)


def begin(waits: Waits) -> None:
    """From now on what this task awaits by `waiting` is added to `waits`."""
    waits.task = asyncio.current_task()
    _of_this_task.set(waits)


async def waiting(awaited: Awaitable[Result]) -> Result:
    """Await what others must do before a request can be answered.

    A task that a request left behind inherits the variable, but its waits are nobody's.
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
