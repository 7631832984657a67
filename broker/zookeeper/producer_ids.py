"""Producer ids: blocks of 1000 taken from `/latest_producer_id_block` by conditional writes."""

from __future__ import annotations

import asyncio

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import LOST, BadVersionError, Session

BLOCK_SIZE = 1000


class ProducerIds:
    """Hands out producer ids that no other broker of the cluster hands out."""

    def __init__(self, zk: Session, broker_id: int) -> None:
        self._zk = zk
        self._broker_id = broker_id
        self._next = 0
        self._end = -1  # last id of the block in hand
        self._taking = asyncio.Lock()

    async def next_id(self) -> int:
        """A fresh producer id; takes a new block when the one in hand is used up."""
        async with self._taking:
            if self._next > self._end:
                self._next, self._end = await take_block(self._zk, self._broker_id)
            self._next += 1
            return self._next - 1


async def take_block(zk: Session, broker_id: int) -> tuple[int, int]:
    """First and last id of a block that is now the caller's (`ZkProducerIdManager`).

    After a lost connection the write may have been done: the block is given up then and the next
    one taken, since ids need not be dense.
    """
    while True:
        data, stat = await zk.get(znodes.PRODUCER_ID_BLOCK)
        start = znodes.decode_producer_id_block(data)[1] + 1 if data else 0
        block = start, start + BLOCK_SIZE - 1
        value = znodes.encode_producer_id_block(broker_id, *block)
        try:
            await zk.set(znodes.PRODUCER_ID_BLOCK, value, stat.version)
        except (BadVersionError, *LOST):
            continue
        return block
