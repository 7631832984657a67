"""Blocking code in the simulation: a greenlet runs it, and its waits are those of a task.

`run_blocking` runs a function in a greenlet of its own. There `wait_for` passes an awaitable to the
task that started the greenlet, and returns the result when the task has it. So code that was
written for sockets and threads runs by the loop's time and without a thread: when it continues
depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")


async def run_blocking(function: Callable[[], T]) -> T:
    """The result of a function that may call `wait_for`."""
    running = greenlet(function)
    passed = running.switch()
    while not running.dead:
        try:
            result = await passed
        except BaseException as error:  # a cancellation, too: the function unwinds
            passed = running.throw(error)
        else:
            passed = running.switch(result)
    ended: T = passed
    return ended


def wait_for(awaitable: Awaitable[T]) -> T:
    """Wait, in a function of `run_blocking`. Raises what the awaitable raises."""
    parent = getcurrent().parent
    assert parent is not None, "outside of run_blocking"
    result: T = parent.switch(awaitable)
    return result
