"""Logs of messages of magic 0 and 1: reads, appends, truncation, replication, retention."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, append, batch, close_logs, open_log
from tests.broker.log.old_folders import OLD_CODECS, Row, old_messages
from tests.broker.log.test_old_folders import rows_of
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.wire.errors import ErrorCode

CONFIG = LogConfig(index_interval_bytes=100)
FIRST_LOG = "00000000000000000000.log"


def rows(magic: int, first: int, count: int) -> list[Row]:
    return [
        Row(first + n, NOW_MS + first + n if magic else -1, b"k", b"%d" % (first + n))
        for n in range(count)
    ]


def written(folder: Path, magic: int, codec: int) -> list[Row]:
    """Six appends of five messages."""
    groups = [rows(magic, first, 5) for first in range(0, 30, 5)]
    data = b"".join(old_messages(magic, codec, each) for each in groups)
    (folder / FIRST_LOG).write_bytes(data)
    return [row for each in groups for row in each]


def opened(folder: Path, *, clean: bool = True, config: LogConfig = CONFIG) -> PartitionLog:
    log = open_log(folder, config=config, remembered=CheckpointedState(clean=clean))
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_old_log_is_served_and_appended_to(
    tmp_path: Path, magic: int, codec: int, clean: bool
) -> None:
    known = written(tmp_path, magic, codec)
    log = opened(tmp_path, clean=clean)
    assert rows_of(log, known) == known
    assert append(log, batch([b"after"])).base_offset == 30
    log.close()
    again = opened(tmp_path)
    assert rows_of(again, known) == [*known, Row(30, NOW_MS, b"k", b"after")]
    assert again.segments.base_offsets == [0]
    close_logs(again)


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_truncation_removes_the_message_with_the_offset(
    tmp_path: Path, magic: int, codec: int
) -> None:
    known = written(tmp_path, magic, codec)
    log = opened(tmp_path)
    log.truncate_to(13)
    end = 10 if codec else 13
    assert log.log_end_offset == end
    assert rows_of(log, known) == known[:end]
    close_logs(log)
    assert opened(tmp_path, clean=False).log_end_offset == end


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_follower_copies_old_messages_byte_for_byte(tmp_path: Path, magic: int, codec: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    written(tmp_path / "a", magic, codec)
    leader, follower = opened(tmp_path / "a"), open_log(tmp_path / "b", config=CONFIG)
    append(leader, batch([b"after"]))
    while follower.log_end_offset < leader.log_end_offset:
        read = leader.read(follower.log_end_offset, 150, upto=leader.log_end_offset)
        result = follower.append_as_follower(memoryview(b"".join(read.records)), NOW_MS)
        assert result.error is ErrorCode.NONE
    for log in (leader, follower):
        log.close()
    assert (tmp_path / "b" / FIRST_LOG).read_bytes() == (tmp_path / "a" / FIRST_LOG).read_bytes()


def test_damaged_old_message_is_not_copied(tmp_path: Path) -> None:
    data = bytearray(old_messages(1, 0, rows(1, 0, 1)))
    data[-1] ^= 1
    result = open_log(tmp_path).append_as_follower(memoryview(data), NOW_MS)
    assert result.error is ErrorCode.CORRUPT_MESSAGE


def test_smallest_message_at_the_end_of_a_file_is_found(tmp_path: Path) -> None:
    known = [Row(offset, -1, None, None) for offset in range(400)]
    data = old_messages(0, 0, known)
    assert len(data) == 400 * 26
    (tmp_path / FIRST_LOG).write_bytes(data)
    log = opened(tmp_path)
    assert log.log_end_offset == 400
    assert [log.read(offset, 1, upto=400).size for offset in range(400)] == [26] * 400


@pytest.mark.parametrize("magic", [0, 1])
def test_old_segments_expire(tmp_path: Path, magic: int) -> None:
    """By their newest time, or without times by the file's."""
    written(tmp_path, magic, 1)
    log = opened(tmp_path, config=replace(CONFIG, retention_ms=1000))
    log.segments[0].file.set_modified_ms(NOW_MS)
    append(log, batch([b"x"], timestamp_ms=-1 if not magic else NOW_MS))
    log.update_high_watermark(31)
    log.segments[0].file.set_modified_ms(NOW_MS)
    assert log.apply_retention(NOW_MS + 900) == 0
    assert log.apply_retention(NOW_MS + 1100) == 1
    assert log.log_start_offset == 31


def test_start_within_a_compressed_message_is_kept(tmp_path: Path) -> None:
    known = written(tmp_path, 1, 1)
    log = opened(tmp_path)
    assert log.increment_log_start_offset(13) is ErrorCode.NONE
    assert rows_of(log, known) == known[13:]
