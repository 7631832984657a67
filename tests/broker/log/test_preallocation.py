"""`preallocate`: new segment files have their full size and are trimmed when sealed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.log.helpers import append, batch, close_logs, open_log, read_all
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.recovery import CheckpointedState

CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=150, preallocate=True)


def sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in sorted(folder.glob("*.log"))]


def test_preallocated_segment_is_trimmed_when_sealed(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path, config=CONFIG)
    assert sizes(tmp_path) == [4000]
    written = []
    while len(log.segments) < 3:
        append(log, batch([b"x" * 100]))
        written = [segment.size for segment in log.segments]
    assert log.size == sum(written)
    assert sizes(tmp_path) == [*written[:2], 4000]
    contents = read_all(log)
    log.close()
    assert sizes(tmp_path) == written
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(clean=True))
    assert read_all(again) == contents
    append(again)
    assert again.log_end_offset == len(contents) + 1
    again.close()


@pytest.mark.parametrize("count", [0, 1, 25, 60])
def test_zeros_after_a_crash_are_not_records(tmp_path: Path, count: int) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for _ in range(count):
        append(log, batch([b"x" * 100]))
    contents, written = read_all(log), [segment.size for segment in log.segments]
    close_logs(log)
    assert sizes(tmp_path)[-1] == 4000
    again = open_log(tmp_path, config=CONFIG)
    assert read_all(again) == contents
    assert sizes(tmp_path) == written
    for _ in range(count + 1):
        append(again, batch([b"x" * 100]))
    assert len(read_all(again)) == 2 * count + 1
    again.close()


def test_preallocation_after_a_truncation(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    for _ in range(20):
        append(log)
    log.truncate_to(10)
    append(log)
    assert len(read_all(log)) == 11
    log.truncate_fully_and_start_at(50)
    assert sizes(tmp_path) == [4000]
    append(log)
    assert [offset for offset, _ in read_all(log)] == [50]
    log.close()
    assert sizes(tmp_path) == [log.size]
