"""The clock: wall time for timestamps, the event loop's time for timeouts."""

from __future__ import annotations

import asyncio
import time


class Clock:
    """Wall time in ms since 1970 and the running loop's monotonic time in ms."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000.0
