"""Read a partition of the offsets topic into a shard without holding up other requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from urteil.broker.groups.shard import Shard
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.batches import BatchHeader, iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.primitives import WireError

log = logging.getLogger("groups")

CHUNK_BYTES = 1 << 20


async def load_shard(
    shard: Shard, partition_log: PartitionLog, is_wanted: Callable[[], bool]
) -> None:
    """Replay the whole log as it is now; stops early when `is_wanted` turns false.

    A record that cannot be read is logged and left out: one bad record shall not keep every
    group of its partition from its coordinator.
    """
    offset, end = partition_log.log_start_offset, partition_log.log_end_offset
    while offset < end and is_wanted():
        result = partition_log.read(offset, CHUNK_BYTES, upto=end)
        if result.error is not ErrorCode.NONE or not result.records:
            log.error("%s: reading at %d failed: %s", partition_log.directory, offset, result.error)
            return
        data = memoryview(b"".join(result.records))
        # a read that ends at its limit may cut the last batch
        for header, batch in iter_batches(data, allow_partial_tail=True):
            if header.last_offset >= offset:
                _replay(shard, header, batch)
        offset = max(result.next_offset, offset + 1)
        await asyncio.sleep(0)  # let the other requests in between two chunks


def _replay(shard: Shard, header: BatchHeader, batch: memoryview) -> None:
    if header.is_control:
        return
    for record in iter_records(batch):
        try:
            shard.replay(record.key, record.value, record.offset)
        except WireError as error:
            log.error("__consumer_offsets-%d@%d: %s", shard.partition, record.offset, error)
