"""Short work that many clients can ask for at once, one piece a turn of the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class OneATurn:
    """Runs callbacks in their order; whoever else is ready has a turn after each."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def put(self, callback: Callable[[], None]) -> None:
        self._waiting.append(callback)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        try:
            self._waiting[0]()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._next)
