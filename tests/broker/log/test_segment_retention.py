from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, append, batch, close_logs, open_log, read_all
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.errors import ErrorCode

SIZE = len(batch([b"x" * 40]))


def filled(folder: Path, count: int = 12, **settings: object) -> PartitionLog:
    """Four batches a segment, a ms apart."""
    log = open_log(folder, config=LogConfig(segment_bytes=4 * SIZE, **settings))  # type: ignore[arg-type]
    for number in range(count):
        append(log, batch([b"x" * 40], timestamp_ms=NOW_MS + number))
    log.update_high_watermark(count)
    return log


def names(folder: Path, suffix: str) -> list[str]:
    return sorted(path.name[18:] for path in folder.glob(f"*{suffix}"))


def test_segment_rolls_by_record_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_ms=100))
    for timestamp_ms in (0, 100, 101, 50, 300):
        append(log, batch(timestamp_ms=NOW_MS + timestamp_ms))
    assert log.segments.base_offsets == [0, 2, 4]


def test_segment_without_timestamps_rolls_by_age(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_ms=100))
    for now_ms in (NOW_MS, NOW_MS + 100, NOW_MS + 101, NOW_MS + 110):
        log.append_as_leader(batch(timestamp_ms=-1), 0, now_ms)
    assert log.segments.base_offsets == [0, 2]


def test_segment_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_index_bytes=48, index_interval_bytes=1))
    for number in range(20):
        append(log, batch(timestamp_ms=NOW_MS + number))
    assert len(log.segments) > 3
    assert max(path.stat().st_size for path in tmp_path.glob("*.timeindex")) <= 48
    assert len(read_all(log)) == 20


def test_segment_rolls_before_it_exceeds_its_size(tmp_path: Path) -> None:
    log = filled(tmp_path, count=9)
    assert log.segments.base_offsets == [0, 4, 8]
    assert [segment.size for segment in log.segments] == [4 * SIZE, 4 * SIZE, SIZE]
    append(log, batch([b"x" * 41]))
    assert log.segments.base_offsets == [0, 4, 8]


def test_jitter_spreads_segment_rolls(tmp_path: Path) -> None:
    """By up to segment.jitter.ms; of many logs that began together, too."""
    config = LogConfig(segment_ms=1000, segment_jitter_ms=400)
    ages = []
    for partition in range(8):
        folder = tmp_path / f"t-{partition}"
        folder.mkdir()
        log = open_log(folder, config=config)
        for step in range(40):
            append(log, batch(timestamp_ms=NOW_MS + 50 * step))
        first, second, *_ = log.segments.base_offsets
        ages.append((second - first) * 50)
        close_logs(log)
    assert all(600 < age <= 1050 for age in ages)
    assert len(set(ages)) > 3


def test_relative_offsets_of_a_segment_fit_31_bits(tmp_path: Path) -> None:
    """The indexes hold them relative to the segment's first, as 31 bits."""
    log = open_log(tmp_path)
    wide = 2**31
    for base_offset in (0, 5, wide - 1, wide, 3 * wide, 3 * wide + 1):
        taken = log.append_as_follower(batch(base_offset=base_offset, leader_epoch=0), NOW_MS)
        assert taken.error is ErrorCode.NONE
    assert log.segments.base_offsets == [0, wide, 3 * wide]
    assert [offset for offset, _ in read_all(log)] == [
        0, 5, wide - 1, wide, 3 * wide, 3 * wide + 1,
    ]  # fmt: skip


def test_snapshot_is_removed_with_its_segment(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=100, file_delete_delay_ms=50)
    assert names(tmp_path, ".snapshot") == ["04.snapshot", "08.snapshot"]
    log.apply_retention(NOW_MS + 108)
    assert names(tmp_path, ".snapshot.deleted") == ["04.snapshot.deleted"]


def test_log_start_is_limited_by_the_high_watermark(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.update_high_watermark(7)
    assert log.increment_log_start_offset(8) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.log_start_offset == 0
    assert log.increment_log_start_offset(7) is ErrorCode.NONE
    assert log.increment_log_start_offset(3) is ErrorCode.NONE
    assert log.log_start_offset == 7
    log.truncate_to(5)
    assert log.log_start_offset <= log.high_watermark <= log.log_end_offset


def test_expired_segments_are_hidden_at_once_and_deleted_later(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=100, file_delete_delay_ms=50)
    now_ms = NOW_MS + 108  # the second segment ends at +7
    assert log.apply_retention(now_ms) == 2
    assert (log.log_start_offset, log.segments.base_offsets) == (8, [8])
    assert log.read(7, 100, upto=12).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert names(tmp_path, ".log") == ["08.log"]
    assert names(tmp_path, ".log.deleted") == ["00.log.deleted", "04.log.deleted"]
    log.remove_deleted(now_ms + 49)
    assert len(names(tmp_path, ".deleted")) == 7
    log.remove_deleted(now_ms + 50)
    assert names(tmp_path, ".deleted") == []
    assert log.epochs.entries == [(0, 8)]


def test_all_segments_expire_when_all_are_old(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=100)
    assert log.apply_retention(NOW_MS + 1000) == 3
    assert (log.log_start_offset, log.log_end_offset) == (12, 12)
    assert append(log).base_offset == 12
    assert open_log(tmp_path).log_start_offset == 12


@pytest.mark.parametrize(
    ("retention_bytes", "start"), [(-1, 0), (12, 0), (11, 0), (8, 4), (5, 4), (4, 8), (0, 12)]
)
def test_retention_by_size_removes_the_oldest_segments(
    tmp_path: Path, retention_bytes: int, start: int
) -> None:
    limit = retention_bytes * SIZE if retention_bytes >= 0 else -1
    log = filled(tmp_path, retention_bytes=limit, retention_ms=-1)
    log.apply_retention(NOW_MS + 10**9)
    assert log.log_start_offset == start


def test_segments_beyond_the_high_watermark_stay(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=0)
    log.update_high_watermark(7)
    assert log.apply_retention(NOW_MS + 1000) == 1
    assert log.log_start_offset == 4


def test_compacted_topics_ignore_age_and_size(tmp_path: Path) -> None:
    log = filled(tmp_path, cleanup_policy="compact", retention_ms=0, retention_bytes=0)
    assert log.apply_retention(NOW_MS + 1000) == 0
    assert log.increment_log_start_offset(9) is ErrorCode.NONE
    assert log.apply_retention(NOW_MS + 1000) == 2
    assert (log.log_start_offset, log.segments.base_offsets) == (9, [8])


def test_segments_below_the_log_start_are_removed(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=-1)
    assert log.increment_log_start_offset(12) is ErrorCode.NONE
    assert log.apply_retention(NOW_MS) == 2
    assert log.log_start_offset == 12
    assert append(log).base_offset == 12


def test_truncation_below_the_start_and_inside_a_batch(tmp_path: Path) -> None:
    log = filled(tmp_path)
    append(log, batch([b"a", b"b", b"c"]))
    log.truncate_to(13)
    assert log.log_end_offset == 12
    assert log.truncate_to(12) is False
    log.increment_log_start_offset(9)
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (5, 5, 5)
    assert append(log).base_offset == 5
    log.apply_retention(NOW_MS)
    assert log.segments.base_offsets == [4]
    log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)
    assert append(log).base_offset == 2
