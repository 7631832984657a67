"""Work that a coordinator repeats, such as the removal of expired offsets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable


async def run_periodically(
    period_ms: int, work: Callable[[], Awaitable[None]], log: logging.Logger, name: str
) -> None:
    """Run `work` after every period, for ever. A failure is logged, and the next period follows."""
    while True:
        await asyncio.sleep(period_ms / 1000)
        try:
            await work()
        except Exception:
            log.exception("%s failed; it is repeated in %d ms", name, period_ms)
