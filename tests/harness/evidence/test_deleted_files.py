"""Files that brokers had marked for deletion are reported with their age."""

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


def test_renamed_file_is_reported_with_its_age(tmp_path: Path) -> None:
    _disk(tmp_path)
    _stop_later(tmp_path)
    rows = list(read_deleted_files(3, tmp_path, 7))
    paths = [json.loads(row["labels"])["path"] for row in rows]
    assert paths == ["old-0.0123456789abcdef-delete", "urteil-0/00.index.deleted"]
    assert {(row["source"], row["metric"], row["at_ns"]) for row in rows} == {("b3", METRIC, 7)}
    assert all(0 < row["value"] < 60 for row in rows)


def test_age_counts_from_the_rename_not_from_the_write(tmp_path: Path) -> None:
    (tmp_path / "urteil-0").mkdir()
    file = tmp_path / "urteil-0" / "00.log"
    file.touch()
    os.utime(file, (1, 1))
    file.rename(file.with_suffix(".log.deleted"))
    (tmp_path / CLEAN_STOP).touch()
    (row,) = read_deleted_files(1, tmp_path, 0)
    assert row["value"] < 60


def test_broker_without_clean_stop_has_no_rows(tmp_path: Path) -> None:
    _disk(tmp_path)
    assert not list(read_deleted_files(1, tmp_path, 0))
