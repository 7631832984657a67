"""Producer ids of this broker, from blocks that the controller gives out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

RETRY_S = 0.05

# First and last id of a block that is this broker's. Raises ConnectionError or TimeoutError.
AskForBlock = Callable[[], Awaitable[tuple[int, int]]]


class ProducerIds:
    """Hands out producer ids that no other broker of the cluster hands out."""

    def __init__(self, ask: AskForBlock) -> None:
        self._ask = ask
        self._next = 0
        self._end = -1  # last id of the block in hand
        self._taking = asyncio.Lock()

    async def next_id(self) -> int:
        """A fresh producer id; asks for a new block, until there is one, when the one in hand is
        used up (`RPCProducerIdManager`)."""
        async with self._taking:
            while self._next > self._end:
                try:
                    self._next, self._end = await self._ask()
                except (ConnectionError, TimeoutError):
                    await asyncio.sleep(RETRY_S)
            self._next += 1
            return self._next - 1
