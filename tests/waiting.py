"""Waits of tests for conditions that nothing announces.

Every deadline loop of the tests is a call of these functions; `urteil.chaos.waiting` has those of
the lab.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from urteil.suites.simulation.waiting import holds_within

Value = TypeVar("Value")
LONG_S = 60.0
"""On a machine that others keep busy; only a failure takes so long."""
POLL_S = 0.02


def until(
    read: Callable[[], Value],
    awaited: str | Callable[[], object] = "",
    *,
    deadline_s: float = LONG_S,
    poll_s: float = POLL_S,
) -> Value:
    """The value of `read` as soon as it is true.

    AssertionError with `awaited`, or with its result, after the deadline.
    """
    deadline = time.monotonic() + deadline_s
    while not (value := read()):
        assert time.monotonic() < deadline, _describe(awaited or repr(read), deadline_s)
        time.sleep(poll_s)
    return value


async def wait_until(
    condition: Callable[[], object],
    awaited: str | Callable[[], object] = "",
    *,
    deadline_s: float = LONG_S,
    poll_s: float = POLL_S,
) -> None:
    """As `until`, for the tasks of a loop, by the loop's time. A condition may be a coroutine."""
    is_true = await holds_within(condition, deadline_s, poll_s=poll_s)
    assert is_true, _describe(awaited or repr(condition), deadline_s)


def _describe(awaited: str | Callable[[], object], deadline_s: float) -> str:
    return f"waited {deadline_s:g} s: {awaited() if callable(awaited) else awaited}"
