"""The cleaner checkpoint after restarts, truncations, deletions and moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.log.cleaner.helpers import pairs, put
from tests.broker.log.damage import Unsynced
from tests.broker.log.helpers import NOW_MS, FixedClock
from tests.broker.log.test_log_manager import crash
from urteil.broker.log import checkpoints
from urteil.broker.log.cleaner.cleaner import Cleaner
from urteil.broker.log.cleaner.cleaner_settings import CleanerSettings
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.partition_log import PartitionLog

PROPS = {
    "broker.id": "1",
    "log.cleanup.policy": "compact",
    "log.cleaner.min.cleanable.ratio": "0.01",
}


def started(*folders: Path) -> LogManager:
    manager = LogManager(folders, PROPS, FixedClock(), storage=Unsynced())
    manager.load("cluster")
    return manager


def clean(manager: LogManager) -> None:
    settings = CleanerSettings.from_properties(PROPS)
    Cleaner(manager.compactable_logs, settings, manager.checkpoint_cleaner_offsets).tick(NOW_MS)


def written(manager: LogManager) -> PartitionLog:
    log = manager.get_or_create("t", 0)
    for n in range(10):
        put(log, (b"a", b"%d" % n))
    log.roll(NOW_MS)
    return log


def on_disk(folder: Path) -> dict[tuple[str, int], int]:
    return checkpoints.read_offsets(Unsynced(), folder / checkpoints.CLEANER_OFFSETS)


def test_cleaned_offset_is_known_after_a_crash(tmp_path: Path) -> None:
    manager = started(tmp_path)
    written(manager)
    clean(manager)
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 10\n"
    crash(manager)
    again = started(tmp_path)
    assert [log.cleaned_to for log in again.logs()] == [10]
    crash(again)


@pytest.mark.parametrize("content", [b"", b"0\n2\nt 0 10\n", b"\xff" * 30, b"0\n1\nt 0 99\n"])
def test_damaged_cleaner_checkpoint_starts_over(tmp_path: Path, content: bytes) -> None:
    manager = started(tmp_path)
    written(manager)
    clean(manager)
    crash(manager)
    (tmp_path / checkpoints.CLEANER_OFFSETS).write_bytes(content)
    again = started(tmp_path)
    log = again.get_or_create("t", 0)
    log.update_high_watermark(log.log_end_offset)
    put(log, (b"b", b"1"))
    log.roll(NOW_MS)
    clean(again)
    assert pairs(log) == [(9, b"a", b"9"), (10, b"b", b"1")]
    assert on_disk(tmp_path) == {("t", 0): 11}
    crash(again)


def test_truncation_and_deletion_update_the_cleaner_checkpoint(tmp_path: Path) -> None:
    manager = started(tmp_path)
    log = written(manager)
    clean(manager)
    log.truncate_to(4)
    assert on_disk(tmp_path) == {("t", 0): log.log_end_offset}
    manager.delete("t", 0)
    assert manager.get_or_create("t", 0).cleaned_to is None
    assert on_disk(tmp_path) == {}
    crash(manager)


def test_moving_log_is_not_cleaned(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    manager = started(first, second)
    log = written(manager)
    source, target = (first, second) if log.directory.parent == first else (second, first)
    clean(manager)
    copy = manager.create_future("t", 0, target)
    for segment in log.segments:
        data = segment.file.read_at(segment.size, 0)
        if data:
            copy.append_as_follower(memoryview(data), NOW_MS)
    put(log, (b"a", b"more"))
    log.roll(NOW_MS)
    clean(manager)
    assert log.cleaned_to == 10, "a copy under way"
    moved = manager.promote_future("t", 0)
    manager.tick(NOW_MS)
    assert moved.cleaned_to == 10
    assert (on_disk(source), on_disk(target)) == ({}, {("t", 0): 10})
    crash(manager)
