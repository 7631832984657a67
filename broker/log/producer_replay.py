"""Rebuild of producer state from snapshots and the log (`UnifiedLog.rebuildProducerState`)."""

from __future__ import annotations

import logging

from urteil.broker.log.batch_scan import Batch, read_batches
from urteil.broker.log.producer_snapshots import ProducerSnapshots
from urteil.broker.log.producer_states import ProducerStates, StagedBatches
from urteil.broker.log.segment import DamagedSegment
from urteil.broker.log.segment_list import SegmentList
from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.wire.batch_header import OF_TRANSACTIONS
from urteil.broker.wire.batches import is_crc_valid

_log = logging.getLogger("urteil.broker.log")


def rebuild_producers(
    producers: ProducerStates,
    snapshots: ProducerSnapshots,
    segments: SegmentList,
    *,
    log_start_offset: int,
    end_offset: int,
) -> None:
    """Rebuild the state as of `end_offset` from the newest usable snapshot and the log after it.

    Does nothing if the state is already as of that offset. Removes snapshots
    beyond the end and at or before the log's start.
    """
    snapshots.remove_outside(log_start_offset, end_offset)
    if producers.end_offset == end_offset:
        return
    begin, entries = snapshots.newest_readable(end_offset) or (
        min(log_start_offset, end_offset),
        [],
    )
    producers.reset(begin, entries)
    for index in range(max(segments.floor_index(begin), 0), len(segments)):
        if segments[index].base_offset >= end_offset:
            break
        _replay(producers, segments, index, begin, end_offset)
    producers.end_offset = end_offset


def _replay(
    producers: ProducerStates, segments: SegmentList, index: int, begin: int, end: int
) -> None:
    segment = segments[index]
    try:
        start = segment.position_of(begin)
    except DamagedSegment as damage:
        _log.error("%s: producer state after it is unknown", damage)
        return
    if start is None:
        return
    for batch in read_batches(segment.file, start, segment.size):
        if batch.header.base_offset >= end:
            return
        if is_crc_valid(batch.data):
            apply_batch(producers, batch)


def apply_batch(producers: ProducerStates, batch: Batch) -> list[AbortedTxn]:
    """Add one batch of the log to the producer state; return the transaction that it aborts, if
    any."""
    header = batch.header
    if header.producer_id < 0:
        return []
    if not header.attributes & OF_TRANSACTIONS:
        producers.add_plain_batch(header)
        return []
    staged = StagedBatches(producers, check_sequences=False, trust=True)
    staged.add(header, header.base_offset, batch.data)
    return producers.merge(staged)
