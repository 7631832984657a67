"""Loads a partition of the offsets topic into a shard; other requests run meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable

from urteil.broker.groups.shard import Shard
from urteil.broker.log.log_iteration import iter_log_batches
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.producer_states import read_marker
from urteil.broker.wire.batches import UNREADABLE, BatchHeader, iter_stored_records
from urteil.broker.wire.primitives import WireError

log = logging.getLogger("groups")


async def load_shard(
    shard: Shard, partition_log: PartitionLog, is_wanted: Callable[[], bool]
) -> None:
    """Replay the whole log as it is now; stops early once `is_wanted` is false.

    An unreadable record, or the rest of an unreadable batch, is logged and skipped, so that the
    other groups of the partition stay available.
    """
    async for header, batch in iter_log_batches(partition_log):
        if not is_wanted():
            return
        try:
            _replay(shard, header, batch)
        except UNREADABLE as error:
            log.error("__consumer_offsets-%d@%d: %s", shard.partition, header.base_offset, error)


def _replay(shard: Shard, header: BatchHeader, batch: memoryview) -> None:
    if header.is_control:
        marker = read_marker(batch)
        if marker is not None:
            shard.transaction_ended(header.producer_id, header.base_offset, commit=marker.commit)
        return
    producer_id = header.producer_id if header.is_transactional else None
    for record in iter_stored_records(batch):
        try:
            shard.replay(record.key, record.value, record.offset, producer_id)
        except WireError as error:
            log.error("__consumer_offsets-%d@%d: %s", shard.partition, record.offset, error)
