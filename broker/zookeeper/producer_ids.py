"""Blocks of 1000 producer ids, reserved in `/latest_producer_id_block` by conditional writes."""

from __future__ import annotations

from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import LOST, BadVersionError, Session

BLOCK_SIZE = 1000


async def take_block(zk: Session, broker_id: int) -> tuple[int, int]:
    """Reserve a block; return its first and last id (`ZkProducerIdManager`).

    After a lost connection the write may have succeeded. The block is abandoned and the next one
    reserved, since ids need not be dense.
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
