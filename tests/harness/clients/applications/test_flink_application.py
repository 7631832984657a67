"""From which checkpoint a session of Flink continues."""

from __future__ import annotations

import os
from pathlib import Path

from urteil.harness.clients.applications.flink_application import (
    SCRIPT,
    lacking_checkpoint,
    newest_checkpoint,
)


def write(folder: Path, checkpoint: str, at_s: int, *, complete: bool = True) -> Path:
    """A checkpoint that was completed at a time, or is incomplete."""
    path = folder / "checkpoints" / checkpoint
    path.mkdir(parents=True)
    if complete:
        (path / "_metadata").touch()
        os.utime(path / "_metadata", (at_s, at_s))
    return path


def test_newest_complete_checkpoint_of_all_jobs_counts(tmp_path: Path) -> None:
    write(tmp_path, "first/chk-30", 100)
    newest = write(tmp_path, "second/chk-31", 200)
    write(tmp_path, "second/chk-32", 300, complete=False)
    assert newest_checkpoint(tmp_path) == newest


def test_first_session_has_no_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, "first/chk-1", 100, complete=False)
    assert newest_checkpoint(tmp_path) is None


def test_session_is_ready_with_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    (tmp_path / SCRIPT).touch()
    os.utime(tmp_path / SCRIPT, (150, 150))
    write(tmp_path, "first/chk-30", 100)
    assert lacking_checkpoint(tmp_path) == "it has completed no checkpoint"
    write(tmp_path, "second/chk-31", 200)
    assert lacking_checkpoint(tmp_path) == ""
