"""Compaction of messages of magic 0 and 1, which keep their format (`MemoryRecords.filterTo`)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.log.cleaner.helpers import COMPACTED, clean, put
from tests.broker.log.helpers import NOW_MS, open_log
from tests.broker.log.old_folders import OLD_CODECS, Row, old_messages
from urteil.broker.log.batch_scan import read_batches
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.batches import iter_stored_records
from urteil.broker.wire.errors import ErrorCode

SECOND_MS = 1000


def rows(magic: int, first: int, *pairs: tuple[bytes | None, bytes | None]) -> list[Row]:
    return [
        Row(first + number, NOW_MS + number if magic else -1, key, value)
        for number, (key, value) in enumerate(pairs)
    ]


def follow(log: PartitionLog, magic: int, codec: int, written: list[Row]) -> None:
    data = memoryview(old_messages(magic, codec, written))
    assert log.append_as_follower(data, NOW_MS).error is ErrorCode.NONE
    log.update_high_watermark(log.log_end_offset)


def stored(log: PartitionLog) -> list[tuple[int, int, Row]]:
    """Magic, codec and content of every record."""
    return [
        (part.header.magic, part.header.compression, Row(*record[:4]))
        for segment in log.segments
        for part in read_batches(segment.file, 0, segment.size)
        for record in iter_stored_records(part.data)
    ]


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_newest_of_each_key_stays_in_its_format(tmp_path: Path, magic: int, codec: int) -> None:
    log = open_log(tmp_path, config=COMPACTED)
    first = rows(magic, 0, (b"a", b"1"), (b"b", b"2"), (None, b"3"), (b"c", b"4"), (b"a", b"5"))
    second = rows(magic, 5, (b"b", b"6"), (b"d", None))
    follow(log, magic, codec, first)
    follow(log, magic, codec, second)
    log.roll(NOW_MS)
    put(log, (b"d", b"7"), (b"e", b"8"))
    log.roll(NOW_MS)
    clean(log)
    kept = [(magic, codec, row) for row in (first[3], first[4], second[0])]
    assert stored(log)[:3] == kept
    assert [(key, value) for _, _, (_, _, key, value) in stored(log)[3:]] == [
        (b"d", b"7"), (b"e", b"8"),
    ]  # fmt: skip
    log.close()
    assert stored(open_log(tmp_path, config=COMPACTED))[:3] == kept


@pytest.mark.parametrize("magic", [0, 1])
def test_tombstone_leaves_once_its_segment_is_old(tmp_path: Path, magic: int) -> None:
    """It cannot bear a time to go by: the last write to its segment counts."""
    config = replace(COMPACTED, delete_retention_ms=60 * SECOND_MS)
    log = open_log(tmp_path, config=config)
    follow(log, magic, 0, rows(magic, 0, (b"a", b"1"), (b"b", b"2")))
    log.roll(NOW_MS)
    follow(log, magic, 0, rows(magic, 2, (b"a", None)))
    log.roll(NOW_MS)
    _written_at(log, 0, NOW_MS - 500 * SECOND_MS)
    _written_at(log, 1, NOW_MS - 400 * SECOND_MS)
    clean(log)
    assert [row.offset for _, _, row in stored(log)] == [1, 2]
    put(log, (b"c", b"4"))
    log.roll(NOW_MS)
    _written_at(log, 0, NOW_MS - 400 * SECOND_MS)
    log.config = replace(config, delete_retention_ms=0)
    clean(log)
    assert [row.offset for _, _, row in stored(log)] == [1, 3]


def _written_at(log: PartitionLog, index: int, time_ms: int) -> None:
    os.utime(log.segments[index].file.path, ns=(time_ms * 10**6, time_ms * 10**6))
