"""Full garbage collections, only while no large request is in progress.

Python traverses all objects whenever their number has grown by a quarter. During a request of
100,000 elements that is ten full traversals, and every client waits for each. The elements are no
garbage: reference counts release them once the response is sent. Therefore `begin` restricts the
interpreter to young generations, and `collect` makes the full collections: as rarely as Python
would, and never during a large request.

Objects that survive a slow collection are frozen (`gc.freeze`), so that the metadata of 100,000
partitions is traversed once. Cycles among frozen objects are never found; clients cannot create
such cycles.
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
"""Python's own threshold."""

LOOK_S = 1.0
SLOW_S = 0.02


def begin() -> None:
    """Collect only young generations from now on, and freeze all present objects."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, NEVER)


async def collect(is_busy: Callable[[], bool]) -> None:
    """Make full collections until cancelled. `is_busy` says whether a large request is in
    progress."""
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
    """How often objects have moved to the oldest generation."""
    return int(gc.get_stats()[1]["collections"])
