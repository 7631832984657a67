"""Full garbage collections at moments when they hold nobody up.

Python looks through every object whenever their number has grown by a quarter. While a request of
100,000 elements is being answered, that is a look through all of them, ten times over, and every
client waits for each. But elements are no garbage, and their memory is released without any
collection when the answer is out. So the interpreter collects young objects alone
(`begin`), and the full collections are made here: when as much has survived as Python waits for,
and no large request is under way.

What a slow collection left over is set aside (`gc.freeze`): the metadata of 100,000 partitions is
looked through once. Cycles among objects that were set aside are never found; nothing that a
client can make any number of is one.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

NEVER = 1 << 30
YOUNG = 700
MIDDLE = 10
OLD = 10
"""Python's own thresholds."""

LOOK_S = 1.0
SLOW_S = 0.02


def begin() -> None:
    """Collect young objects alone from now on, and look at none of those that are here now."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, NEVER)


async def collect(is_busy: Callable[[], bool]) -> None:
    """Make the full collections until cancelled; `is_busy`: a large request is under way."""
    collected = _survivals()
    while True:
        await asyncio.sleep(LOOK_S)
        if _survivals() - collected > OLD and not is_busy():
            began_s = time.process_time()
            gc.collect()
            if time.process_time() - began_s > SLOW_S:
                gc.freeze()
            collected = _survivals()


def _survivals() -> int:
    """How often objects have passed into the oldest generation."""
    return int(gc.get_stats()[1]["collections"])
