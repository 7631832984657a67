"""A wait of tasks for a condition that nothing announces, by the time of their loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

POLL_S = 0.02


async def holds_within(
    condition: Callable[[], object], deadline_s: float, *, poll_s: float = POLL_S
) -> bool:
    """Wait until the condition is true. False after the deadline, by the loop's time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + deadline_s
    while True:
        value = condition()
        if await value if inspect.isawaitable(value) else value:
            return True
        if loop.time() > deadline:
            return False
        await asyncio.sleep(poll_s)
