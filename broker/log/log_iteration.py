"""Asynchronous iteration over the batches of a log, with turns for other requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.batches import BatchHeader, CorruptBatch, iter_stored
from urteil.broker.wire.errors import ErrorCode

log = logging.getLogger("log")

CHUNK_BYTES = 1 << 20


async def iter_log_batches(
    partition_log: PartitionLog,
) -> AsyncIterator[tuple[BatchHeader, memoryview]]:
    """Every batch from the log's start to its end at the call, in order.

    A read error is logged and ends the iteration.
    """
    offset, end = partition_log.log_start_offset, partition_log.log_end_offset
    while offset < end:
        result = partition_log.read(offset, CHUNK_BYTES, upto=end)
        if result.error is not ErrorCode.NONE or not result.records:
            log.error("%s: reading at %d failed: %s", partition_log.directory, offset, result.error)
            return
        data = memoryview(b"".join(result.records))
        # a read that ends at its limit may have an incomplete last batch
        try:
            for header, batch in iter_stored(data, allow_partial_tail=True):
                if header.last_offset >= offset:
                    yield header, batch
        except CorruptBatch as error:
            log.error("%s: reading at %d failed: %s", partition_log.directory, offset, error)
            return
        offset = max(result.next_offset, offset + 1)
        await asyncio.sleep(0)  # other requests run between two chunks
