"""Producer ids of this broker, from blocks that the controller assigns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

RETRY_S = 0.05

# First and last id of a block that is this broker's. Raises ConnectionError or TimeoutError.
AskForBlock = Callable[[], Awaitable[tuple[int, int]]]


class ProducerIds:
    """Assigns producer ids that are unique in the cluster."""

    def __init__(self, ask: AskForBlock) -> None:
        self._ask = ask
        self._next = 0
        self._end = -1  # last id of the block in hand
        self._taking = asyncio.Lock()

    async def next_id(self) -> int:
        """Return a new producer id; request the next block, until it arrives, when the current one
        is used up (`RPCProducerIdManager`)."""
        async with self._taking:
            while self._next > self._end:
                try:
                    self._next, self._end = await self._ask()
                except (ConnectionError, TimeoutError):
                    await asyncio.sleep(RETRY_S)
            self._next += 1
            return self._next - 1
