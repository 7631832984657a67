"""What brokers had set aside for deletion is told, with how long ago that was."""

from __future__ import annotations

import json
import os
from pathlib import Path

from urteil.harness.evidence.readers.deleted_files import CLEAN_STOP, METRIC, read_deleted_files


def _disk(data: Path) -> None:
    for name in ("urteil-0", "old-0.0123456789abcdef-delete"):
        (data / name).mkdir(parents=True)
        for file in ("00.log", "00.index.deleted"):
            (data / name / file).touch()


def _stop_later(data: Path) -> None:
    """Leave the mark of a clean stop, at a later time by the file system's coarse clock."""
    made = max(path.stat().st_ctime_ns for path in data.rglob("*"))
    marker = data / CLEAN_STOP
    marker.touch()
    while marker.stat().st_ctime_ns <= made:
        marker.touch()


def test_what_was_set_aside_is_told_with_its_age(tmp_path: Path) -> None:
    _disk(tmp_path)
    _stop_later(tmp_path)
    rows = list(read_deleted_files(3, tmp_path, 7))
    paths = [json.loads(row["labels"])["path"] for row in rows]
    assert paths == ["old-0.0123456789abcdef-delete", "urteil-0/00.index.deleted"]
    assert {(row["source"], row["metric"], row["at_ns"]) for row in rows} == {("b3", METRIC, 7)}
    assert all(0 < row["value"] < 60 for row in rows)


def test_a_rename_counts_and_not_when_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "urteil-0").mkdir()
    file = tmp_path / "urteil-0" / "00.log"
    file.touch()
    os.utime(file, (1, 1))
    file.rename(file.with_suffix(".log.deleted"))
    (tmp_path / CLEAN_STOP).touch()
    (row,) = read_deleted_files(1, tmp_path, 0)
    assert row["value"] < 60


def test_of_a_broker_that_did_not_end_by_itself_nothing_is_told(tmp_path: Path) -> None:
    _disk(tmp_path)
    assert not list(read_deleted_files(1, tmp_path, 0))
