"""Helpers for tests of the cleaner: logs, appends and their content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.broker.log.helpers import NOW_MS
from urteil.broker.log.batch_scan import read_batches
from urteil.broker.log.cleaner.cleaner import Cleaner
from urteil.broker.log.cleaner.cleaner_settings import CleanerSettings
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.batches import BatchHeader, Record, build_batch, is_crc_valid, iter_records
from urteil.broker.wire.errors import ErrorCode

COMPACTED = LogConfig(
    cleanup_policy="compact",
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
    segment_bytes=4000,
    index_interval_bytes=200,
)

Pair = tuple[bytes | None, bytes | None]


def cleaner_of(*logs: PartitionLog, **settings: Any) -> Cleaner:
    return Cleaner(lambda: logs, CleanerSettings(**settings), lambda _: None)


def clean(log: PartitionLog, now_ms: int = NOW_MS, **settings: Any) -> Cleaner:
    """Clean everything cleanable, synchronously."""
    cleaner = cleaner_of(log, **settings)
    cleaner.tick(now_ms)
    assert log.failure is None
    return cleaner


def put(log: PartitionLog, *pairs: Pair, timestamp_ms: int = NOW_MS, **options: Any) -> int:
    """Append one batch of keys and values; returns its base offset."""
    options.setdefault("base_offset", log.log_end_offset)
    options.setdefault("leader_epoch", 0)
    records = [(key, value, [], timestamp_ms) for key, value in pairs]
    data = memoryview(build_batch(records, **options))
    result = log.append_as_follower(data, NOW_MS)
    assert result.error is ErrorCode.NONE, result
    log.update_high_watermark(log.log_end_offset)
    return int(result.base_offset)


def batches(log: PartitionLog) -> Iterator[tuple[BatchHeader, memoryview]]:
    """All batches of the files; each must be intact."""
    expected = 0
    for segment in log.segments:
        position = 0
        for each in read_batches(segment.file, 0, segment.size):
            assert is_crc_valid(each.data)
            assert expected <= each.header.base_offset
            expected = each.header.last_offset + 1
            position += each.header.size
            yield each.header, each.data
        assert position == segment.size
        assert expected <= segment.bound


def records(log: PartitionLog) -> list[Record]:
    """All records except control records."""
    return [
        record
        for header, data in batches(log)
        if not header.is_control
        for record in iter_records(data)
    ]


def pairs(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records(log)]


def newest(records: Sequence[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, Any]:
    """The newest value of each key, as a reader from the start gets it."""
    state = {key: value for _, key, value in records}
    return {key: value for key, value in state.items() if value is not None}
