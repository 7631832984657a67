"""Indexes that do not match their log: reads bypass them, and a background job rebuilds them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, append, batch, first_at, open_log, read_all
from tests.broker.log.test_recovery import check_indexes
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.maintenance import Maintenance
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import File, Storage

CONFIG = LogConfig(segment_bytes=200_000, index_interval_bytes=150)
BATCHES = 2000


class Counting(Storage):
    """Counts what is read of `.log` files."""

    read_bytes = 0

    def open(self, path: Path, *, create: bool = False) -> File:
        file = super().open(path, create=create)
        storage = self

        class Counted(File):
            def read_at(self, size: int, position: int) -> bytes:
                data = super().read_at(size, position)
                if self.path.suffix == ".log":
                    storage.read_bytes += len(data)
                return data

        counted, file._fd = Counted(path, file._fd), -1
        return counted


@pytest.fixture
def storage() -> Counting:
    return Counting()


@pytest.fixture
def log(tmp_path: Path, storage: Counting) -> PartitionLog:
    """A sealed segment of some 200 KB, and an active one."""
    log = open_log(tmp_path, config=CONFIG, storage=storage)
    for n in range(BATCHES):
        append(log, batch([b"x" * 50], timestamp_ms=NOW_MS + n))
    assert len(log.segments) == 2
    return log


def spoil(path: Path, entry_bytes: int, count: int) -> bytes:
    """Zero `count` entries in the middle; returns what was there."""
    content = path.read_bytes()
    at = len(content) // entry_bytes // 2 * entry_bytes
    path.write_bytes(
        content[:at] + bytes(count * entry_bytes) + content[at + count * entry_bytes :]
    )
    return content


@pytest.mark.parametrize("count", [1, 5, 20])
def test_read_bypasses_wrong_index_entries(
    log: PartitionLog, storage: Counting, count: int
) -> None:
    sealed = log.segments[0]
    path = sealed.offset_index.path
    content = path.read_bytes()
    at = len(content) // 16 * 8
    garbage = bytearray(content)
    for slot in range(count):
        where = at + slot * 8
        relative, position = struct.unpack_from(">ii", content, where)
        struct.pack_into(">ii", garbage, where, relative, position + 7)
    path.write_bytes(garbage)
    offset = sealed.base_offset + struct.unpack_from(">i", content, at + (count - 1) * 8)[0] + 1
    storage.read_bytes = 0
    result = log.read(offset, 1, upto=log.log_end_offset)
    assert struct.unpack_from(">q", b"".join(result.records))[0] == offset
    assert storage.read_bytes < sealed.size / 4, "the whole segment was read for one record"
    assert log.segments.misindexed == [sealed]


def test_time_lookup_bypasses_wrong_index_entries(log: PartitionLog, storage: Counting) -> None:
    spoil(log.segments[0].time_index.path, 12, 3)
    for n in range(0, log.segments[0].bound, 37):
        found_offset = first_at(log, NOW_MS + n)
        assert found_offset is not None
        assert found_offset.offset == n


@pytest.mark.parametrize(("suffix", "entry_bytes"), [("offset_index", 8), ("time_index", 12)])
def test_wrong_indexes_are_rebuilt_in_the_background(
    log: PartitionLog, suffix: str, entry_bytes: int
) -> None:
    jobs: list[Callable[[], None]] = []
    duties = Maintenance(log.storage, {}, jobs.append)
    path: Path = getattr(log.segments[0], suffix).path
    original = spoil(path, entry_bytes, 4)
    for n in range(log.segments[0].bound):
        assert log.read(n, 1, upto=log.log_end_offset).size
        assert first_at(log, NOW_MS + n) is not None
    duties.run([log], NOW_MS)
    assert path.read_bytes() != original, "built on the loop of the readers"
    for job in jobs:
        job()
    duties.run([log], NOW_MS)
    assert path.read_bytes() == original
    check_indexes(log)
    assert not log.segments.misindexed
    assert len(read_all(log)) == BATCHES


def test_index_of_a_damaged_log_is_not_rebuilt(log: PartitionLog) -> None:
    jobs: list[Callable[[], None]] = []
    duties = Maintenance(log.storage, {}, jobs.append)
    sealed = log.segments[0]
    original = spoil(sealed.offset_index.path, 8, 1)
    with sealed.path(".log").open("r+b") as file:
        file.seek(sealed.offset_index.entry(3)[1] + 8)
        file.write(bytes(4))
    for n in range(0, sealed.bound, 10):
        log.read(n, 1, upto=log.log_end_offset)
    duties.run([log], NOW_MS)
    for job in jobs:
        job()
    duties.run([log], NOW_MS)
    assert sealed.offset_index.count == len(original) // 8
