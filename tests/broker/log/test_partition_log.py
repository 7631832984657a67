import dataclasses
import os
from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, append, batch, first_at, newest_in, open_log, read_all
from urteil.broker.log.log_config import LogConfig
from urteil.broker.wire.batches import is_crc_valid, iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def test_append_assigns_offsets_without_changing_the_callers_buffer(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = batch([b"a", b"b", b"c"])
    before = bytes(data)
    first, second = append(log, data, epoch=4), append(log, data, epoch=4)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 5)
    assert bytes(data) == before
    records = log.read(3, 1000, upto=6).records[0]
    ((header, part),) = iter_batches(memoryview(records))
    assert (header.base_offset, header.partition_leader_epoch) == (3, 4)
    assert is_crc_valid(part)


def test_one_append_writes_several_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = memoryview(b"".join((batch([b"a", b"b"]), batch([b"c"]))))
    assert log.append_as_leader(data, 0, NOW_MS, from_client=False).last_offset == 2
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_log_append_time_is_the_brokers_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(message_timestamp_type="LogAppendTime"))
    result = log.append_as_leader(batch(timestamp_ms=5), 0, NOW_MS)
    assert result.log_append_time_ms == NOW_MS
    ((header, part),) = iter_batches(memoryview(log.read(0, 1000, upto=1).records[0]))
    assert is_crc_valid(part)
    assert (header.timestamp_type, header.max_timestamp) == (1, NOW_MS)
    assert next(iter_records(part)).timestamp_ms == NOW_MS
    assert newest_in(log) == (NOW_MS, 0, 0)


def _flip(data: memoryview, position: int) -> memoryview:
    damaged = bytearray(data)
    damaged[position] ^= 1
    return memoryview(bytes(damaged))


@pytest.mark.parametrize(
    ("data", "config", "error"),
    [
        (_flip(batch(), 65), LogConfig(), ErrorCode.CORRUPT_MESSAGE),
        (_flip(batch(), 16), LogConfig(), ErrorCode.CORRUPT_MESSAGE),
        (batch(base_offset=1), LogConfig(), ErrorCode.INVALID_RECORD),
        (batch(control=True), LogConfig(), ErrorCode.INVALID_RECORD),
        (batch(producer=(1, 0, -1)), LogConfig(), ErrorCode.INVALID_RECORD),
        (batch([b"x" * 100]), LogConfig(max_message_bytes=100), ErrorCode.MESSAGE_TOO_LARGE),
        (batch([b"x" * 100]), LogConfig(segment_bytes=100), ErrorCode.RECORD_LIST_TOO_LARGE),
        (batch(key=None), LogConfig(cleanup_policy="compact"), ErrorCode.INVALID_RECORD),
        (
            batch(timestamp_ms=NOW_MS - 11),
            LogConfig(message_timestamp_before_max_ms=10),
            ErrorCode.INVALID_TIMESTAMP,
        ),
        (
            batch(timestamp_ms=NOW_MS + 11),
            LogConfig(message_timestamp_difference_max_ms=10),
            ErrorCode.INVALID_TIMESTAMP,
        ),
    ],
)
def test_invalid_batches_are_rejected(
    tmp_path: Path, data: memoryview, config: LogConfig, error: ErrorCode
) -> None:
    log = open_log(tmp_path, config=config)
    result = log.append_as_leader(data, 0, NOW_MS)
    assert result.error is error
    assert result.message
    assert log.log_end_offset == 0
    assert os.path.getsize(tmp_path / "00000000000000000000.log") == 0


def test_follower_appends_the_leaders_batches_unchanged(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    leader = open_log(tmp_path / "a", config=SMALL)
    follower = open_log(tmp_path / "b", config=SMALL)
    for number in range(20):
        append(leader, batch([b"%d" % number] * 3), epoch=number // 7)
    while follower.log_end_offset < leader.log_end_offset:
        read = leader.read(follower.log_end_offset, 450, upto=leader.log_end_offset)
        data = memoryview(b"".join(read.records))
        assert follower.append_as_follower(data, NOW_MS).error is ErrorCode.NONE
    assert read_all(follower) == read_all(leader)
    assert follower.epochs.entries == leader.epochs.entries == [(0, 0), (1, 21), (2, 42)]
    assert len(follower.segments) > 1
    assert all(segment.size <= 600 for segment in follower.segments)


def test_follower_splits_a_fetch_over_segments(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b", config=SMALL)
    for number in range(20):
        append(leader, batch([b"x" * 50], producer=(1, 0, number)))
    data = leader.read(0, 1 << 20, upto=20).records[0]
    assert follower.append_as_follower(memoryview(data), NOW_MS).last_offset == 19
    assert all(segment.size <= 600 for segment in follower.segments)
    follower.truncate_to(follower.segments.active_segment.base_offset)
    assert follower.producers.entries[1].last_sequence == follower.log_end_offset - 1


def test_follower_rejects_offsets_below_its_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch([b"a", b"b"]))
    result = log.append_as_follower(batch(base_offset=1, leader_epoch=0), NOW_MS)
    assert result.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.append_as_follower(_flip(batch(base_offset=2), 65), NOW_MS).error is (
        ErrorCode.CORRUPT_MESSAGE
    )
    assert log.log_end_offset == 2


def test_follower_accepts_gaps_of_any_width(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    for base_offset in (7, 2**40):
        assert not log.append_as_follower(batch(base_offset=base_offset), NOW_MS).error
    assert log.segments.base_offsets == [0, 2**40]
    assert [offset for offset, _ in read_all(log)] == [0, 7, 2**40]
    assert log.read(3, 1000, upto=8).next_offset == 8
    assert open_log(tmp_path).log_end_offset == 2**40 + 1


@pytest.mark.parametrize("max_bytes", [1, 75, 200, 10_000])
def test_reads_across_segments_return_all_records(tmp_path: Path, max_bytes: int) -> None:
    log = open_log(tmp_path, config=SMALL)
    expected = []
    for number in range(60):
        values = [b"%d" % number] * (number % 4 + 1)
        base = append(log, batch(values)).base_offset
        expected += [(base + index, value) for index, value in enumerate(values)]
    assert len(log.segments) > 5
    assert read_all(log, max_bytes) == expected
    assert read_all(open_log(tmp_path, config=SMALL), max_bytes) == expected


def test_read_ends_with_a_complete_batch_below_the_bound(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(index_interval_bytes=300))
    for _ in range(2000):  # more than the log keeps the positions of
        append(log, batch([b"a", b"b"]))
    for offset, upto in [(0, 2), (10, 400), (1, 3999), (3998, 4000), (3001, 3900)]:
        result = log.read(offset, 1 << 20, upto=upto)
        headers = [header for header, _ in iter_batches(memoryview(result.records[0]))]
        assert headers[0].base_offset == offset - offset % 2
        assert headers[-1].next_offset == upto - upto % 2 == result.next_offset


def test_read_respects_max_bytes_except_for_the_first_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    size = len(batch([b"x" * 100]))
    for _ in range(3):
        append(log, batch([b"x" * 100]))
    assert log.read(0, size + 7, upto=3).size == size + 7
    assert log.read(0, size + 7, upto=3).next_offset == 1
    assert log.read(0, 10, upto=3).size == size
    assert log.read(0, 0, upto=3).size == size
    assert log.read(0, 10, upto=3, min_one=False).size == 0
    assert log.read(0, 10, upto=3, min_one=False).error is ErrorCode.NONE


def test_read_beyond_the_end_is_an_error(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    assert log.read(1, 100, upto=1).size == 0
    assert log.read(0, 100, upto=0).size == 0
    assert log.read(2, 100, upto=5).error is ErrorCode.OFFSET_OUT_OF_RANGE
    log.update_high_watermark(1)
    log.increment_log_start_offset(1)
    assert log.read(0, 100, upto=1).error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_high_watermark_stays_within_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch([b"a", b"b"]))
    assert log.update_high_watermark(9) == 2
    assert log.last_stable_offset == 2
    log.truncate_to(0)
    assert log.high_watermark == 0


def test_config_change_applies_to_the_next_append(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch([b"x" * 300]))
    log.config = dataclasses.replace(log.config, segment_bytes=400)
    append(log, batch([b"x" * 300]))
    assert log.segments.base_offsets == [0, 1]


def test_time_lookup_finds_the_first_record_at_or_after(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=SMALL)
    times = [100, 300, 200, 400, 400, 250, 900, 1000, 1000, 700] * 3
    for time_ms in times:
        append(log, batch([b"x" * 40], timestamp_ms=time_ms))
    assert len(log.segments) > 2
    for log_again in (log, open_log(tmp_path, config=SMALL)):
        for asked_ms in (0, 100, 101, 250, 300, 400, 401, 901, 1000):
            offset = next(index for index, time_ms in enumerate(times) if time_ms >= asked_ms)
            assert first_at(log_again, asked_ms) == (times[offset], offset, 0)
        assert first_at(log_again, 1001) is None
        assert newest_in(log_again) == (1000, 7, 0)


def test_time_lookup_starts_at_the_log_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch([b"a", b"b", b"c"], timestamp_ms=50))
    log.update_high_watermark(3)
    assert log.increment_log_start_offset(2) is ErrorCode.NONE
    assert first_at(log, 10) == (50, 2, 0)
    assert log.increment_log_start_offset(4) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_time_lookup_in_an_empty_log_finds_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert newest_in(log) is None
    assert first_at(log, 0) is None
