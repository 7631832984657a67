"""A broker's log directories are found, one or several."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.evidence.collection import log_dirs


def test_single_log_directory_is_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "urteil-0").mkdir()
    (tmp_path / "disk1-0").mkdir()  # of a topic with that name
    assert log_dirs(tmp_path) == [tmp_path]


def test_several_log_directories_lie_below_data(tmp_path: Path) -> None:
    for name in ("disk2", "disk1", "disk1.away"):
        (tmp_path / name).mkdir()
    assert log_dirs(tmp_path) == [tmp_path / "disk1", tmp_path / "disk2"]
