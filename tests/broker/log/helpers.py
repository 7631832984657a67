"""Logs in a folder of the test, and batches for them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from urteil.broker.base.offload import run_steps
from urteil.broker.log.checkpoints import ZERO_UUID
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import AppendResult, PartitionLog, TimestampOffset
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.log.storage import Storage
from urteil.broker.log.timestamp_search import Searches
from urteil.broker.wire.batches import build_batch, iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode

NOW_MS = 1_700_000_000_000


class FixedClock:
    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms


def open_log(
    folder: Path,
    *,
    config: LogConfig | None = None,
    storage: Storage | None = None,
    remembered: CheckpointedState | None = None,
    now_ms: int = NOW_MS,
) -> PartitionLog:
    return PartitionLog(
        storage or Storage(), folder, "t", 0, ZERO_UUID, config or LogConfig(), now_ms, remembered
    )


def batch(
    values: Sequence[bytes] = (b"v",),
    *,
    timestamp_ms: int = NOW_MS,
    key: bytes | None = b"k",
    producer: tuple[int, int, int] | None = None,
    **options: Any,
) -> memoryview:
    """A client's batch; `producer` is (id, epoch, first sequence)."""
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    options.setdefault("leader_epoch", -1)
    return memoryview(
        build_batch(
            [(key, value, [], timestamp_ms) for value in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            **options,
        )
    )


def marker(producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0) -> memoryview:
    """A control batch that ends a transaction."""
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, coordinator_epoch)
    return memoryview(
        build_batch(
            [(key, value, [], NOW_MS)],
            leader_epoch=-1,
            producer_id=producer_id,
            producer_epoch=epoch,
            transactional=True,
            control=True,
        )
    )


def append(log: PartitionLog, data: memoryview | None = None, epoch: int = 0) -> AppendResult:
    """Append a batch; the append must succeed."""
    result = log.append_as_leader(data or batch(), epoch, NOW_MS)
    assert result.error is ErrorCode.NONE, result
    return result


def end_txn(log: PartitionLog, producer_id: int, epoch: int = 0, *, commit: bool) -> AppendResult:
    result = log.append_as_leader(
        marker(producer_id, epoch, commit=commit), 0, NOW_MS, from_client=False
    )
    assert result.error is ErrorCode.NONE, result
    return result


def read_all(log: PartitionLog, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """(offset, value) of all records, read in several fetches as a consumer does."""
    rows: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, max_bytes, upto=log.log_end_offset)
        assert result.error is ErrorCode.NONE
        data = memoryview(b"".join(result.records))
        for _, part in iter_batches(data, allow_partial_tail=True):
            rows += [(each.offset, each.value) for each in iter_records(part)]
        assert result.next_offset > offset
        offset = result.next_offset
    return [pair for pair in rows if pair[0] >= log.log_start_offset]


def close_logs(*logs: PartitionLog) -> None:
    """Close the files without writing, as a killed process does."""
    for log in logs:
        for segment in log.segments:
            segment.file.close()


def first_at(log: PartitionLog, timestamp_ms: int) -> TimestampOffset | None:
    """The first record at or after a time."""
    return _first(log.search_timestamp(timestamp_ms))


def newest_in(log: PartitionLog) -> TimestampOffset | None:
    """The first record with the largest timestamp."""
    return _first(log.search_max_timestamp())


def _first(searches: Searches) -> TimestampOffset | None:
    return next((result for result in map(run_steps, searches) if result is not None), None)
