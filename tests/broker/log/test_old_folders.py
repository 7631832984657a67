"""Partitions that other releases wrote, damaged or not: all that is whole is served or kept.

`URTEIL_OLD_FOLDERS` is how many folders are drawn; raise it to hunt.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kafka.record.memory_records import MemoryRecords

from tests.broker.log.damage import quick_folder
from tests.broker.log.helpers import (
    NOW_MS,
    append,
    batch,
    close_logs,
    first_at,
    newest_in,
    open_log,
)
from tests.broker.log.old_folders import OldLog, Row, draw
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.wire.batches import (
    Compression,
    down_convert,
    is_crc_valid,
    iter_stored,
    iter_stored_records,
)
from urteil.broker.wire.errors import ErrorCode

FOLDERS = int(os.environ.get("URTEIL_OLD_FOLDERS", "300"))
SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_drawn_folder_is_served_or_kept(shard: int) -> None:
    failures = []
    for seed in range(shard, FOLDERS, SHARDS):
        old = draw(seed)
        with quick_folder() as folder:
            try:
                _check(old, Path(folder) / "t-0")
            except Exception as error:
                text = str(error).replace("\n", " ")[:300]
                failures.append(f"{old.what}: {type(error).__name__}: {text}")
    if failures:
        pytest.fail(f"{len(failures)}:\n" + "\n".join(failures), pytrace=False)


def _check(old: OldLog, folder: Path) -> None:
    old.write(folder)
    log = open_log(folder, remembered=_remembered(old))
    rows = rows_of(log, old.rows)
    intact = [row for batch in old.intact for row in batch.rows]
    _check_found(old, log, rows, intact)
    _check_nothing_whole_went(old, folder)
    end = log.log_end_offset
    log.update_high_watermark(end)
    assert append(log, batch([b"new"])).base_offset == end
    log.close()
    again = open_log(
        folder, remembered=CheckpointedState(clean=True, log_start_offset=log.log_start_offset)
    )
    assert again.log_end_offset == end + 1
    assert rows_of(again, old.rows)[: len(rows)] == rows
    close_logs(again)


def _remembered(old: OldLog) -> CheckpointedState:
    return CheckpointedState(clean=old.clean, recovery_point=old.recovery_point)


def _check_found(old: OldLog, log: PartitionLog, rows: list[Row], intact: list[Row]) -> None:
    if intact == old.rows and old.is_flushed:
        assert rows == old.rows
        assert log.log_end_offset == old.rows[-1].offset + 1
        _check_times(log, old)
        _check_old_readers(old)
        return
    assert set(rows) <= set(intact)
    if old.is_flushed:
        elsewhere = [batch for batch in old.intact if batch.file != old.hurt_file]
        assert {row for batch in elsewhere for row in batch.rows} <= set(rows)
    before = [batch for batch in old.intact if batch.file < old.hurt_file]
    assert {row for batch in before for row in batch.rows} <= set(rows)


def rows_of(log: PartitionLog, known: list[Row]) -> list[Row]:
    """As a reader gets them that steps over what it cannot read to the next known offset."""
    rows: list[Row] = []
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        result = log.read(offset, 500, upto=end)
        data = memoryview(b"".join(result.records))
        after = offset
        for header, part in iter_stored(data, allow_partial_tail=True):
            if not is_crc_valid(part):
                break
            read = [Row(*stored_record[:4]) for stored_record in iter_stored_records(part)]
            rows += [row for row in read if row.offset >= offset and row.value != b"new"]
            after = header.last_offset + 1
        if after == offset:
            assert result.error in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)
            after = next((row.offset for row in known if row.offset > offset), end)
        offset = after
    return rows


def _check_times(log: PartitionLog, old: OldLog) -> None:
    times = sorted({row.time_ms for row in old.rows})
    for time_ms in [NOW_MS - 1000, *times[:: max(len(times) // 5, 1)], times[-1] + 1]:
        first = next((row for row in old.rows if row.time_ms >= max(time_ms, 0)), None)
        if time_ms < 0:
            continue
        result = first_at(log, time_ms)
        assert (result and (result.offset, result.timestamp_ms)) == (first and first[:2])
    newest = newest_in(log)
    assert newest is not None
    assert newest.timestamp_ms == times[-1]


def _check_old_readers(old: OldLog) -> None:
    """By kafka-python, which knows these formats by itself, all but one codec."""
    for old_batch in old.batches:
        codec = old_batch.data[22 if old_batch.magic == 2 else 17] & 7
        for magic in range(2):
            if codec == Compression.ZSTD:
                continue
            if codec == Compression.LZ4 and min(old_batch.magic, magic) == 0:
                continue
            converted = down_convert(old_batch.data, magic)
            messages = [record for part in MemoryRecords(converted) for record in part]
            assert [(each.offset, each.key, each.value) for each in messages] == [
                (row.offset, row.key, row.value) for row in old_batch.rows
            ]
            if magic and old_batch.magic:
                assert [each.timestamp for each in messages] == [
                    row.time_ms for row in old_batch.rows
                ]


def _check_nothing_whole_went(old: OldLog, folder: Path) -> None:
    left = [path.read_bytes() for path in folder.iterdir() if ".log" in path.name]
    for kept_batch in old.intact:
        assert any(kept_batch.data in content for content in left), kept_batch.rows[0].offset
