"""A queue of short callbacks, of which each turn of the event loop runs one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class OnePerTurn:
    """Runs callbacks in order. Everything else that is ready runs between two of them."""

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
