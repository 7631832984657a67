"""Foreign files in a log directory, and files that a crash left unfinished."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.log.damage import HIT, OTHER, Image, crash_manager, make_image, manager_of, stored
from tests.broker.log.helpers import NOW_MS, append, batch, close_logs, open_log, read_all
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.wire.errors import ErrorCode

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)
HEX = "0123456789abcdef" * 2


@pytest.fixture(scope="module", params=[True, False], ids=["clean", "unclean"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return make_image(tmp_path_factory.mktemp("image"), clean=request.param)


STRAY_FILES = [
    "5.log", "x.log", "²²²²²²²²²²²²²²²²²²²².log", "99.snapshot", "x.snapshot", "notes.txt",
    "00000000000000000099.index", "00000000000000000003.timeindex", "x.cleaned", "x.swap",
    "00000000000000000061.log.deleted", "00000000000000000061.log.cleaned",
    "00000000000000000061.index.swap", "00000000000000000061.txnindex.deleted",
    "00000000000000000061.snapshot.deleted", "partition.metadata.tmp",
]  # fmt: skip
STRAY_IN_ROOT = [
    "notes.txt", "x-delete", f"orders-0.{HEX}-delete", "orders-1", "meta.properties.tmp",
    "recovery-point-offset-checkpoint.tmp", ".kafka_cleanshutdown.tmp", "orders-²",
]  # fmt: skip
STRAY_FOLDERS = [
    "lost+found", "backup-delete", "backup-future", "orders-00", "orders-0-copy", "-1", "orders-²",
    "orders-0/sub", "orders-0/x.deleted", "orders-0/x.swap", "orders-0/x.cleaned",
]  # fmt: skip


def intact(image: Image, folder: Path) -> LogManager:
    """Open the folder: both logs are as they were, and no others are there."""
    manager = manager_of(folder)
    manager.load("cluster")
    for key in (HIT, OTHER):
        log = manager.get(*key)
        assert log is not None
        assert [each.data for each in stored(log)] == [each.data for each in image.batches[key]]
    assert len(manager.logs()) == 2
    return manager


@pytest.mark.parametrize("content", [b"", b"\x00\xff junk" * 30])
def test_stray_files_are_ignored(image: Image, tmp_path: Path, content: bytes) -> None:
    names = [*STRAY_IN_ROOT, *(f"orders-0/{name}" for name in STRAY_FILES)]
    for number, name in enumerate(names):
        folder = tmp_path / str(number)
        image.write(folder)
        (folder / name).write_bytes(content)
        manager = intact(image, folder)
        manager.shutdown()
        crash_manager(intact(image, folder))


def test_stray_folders_are_ignored(image: Image, tmp_path: Path) -> None:
    for number, name in enumerate(STRAY_FOLDERS):
        folder = tmp_path / str(number)
        image.write(folder)
        (folder / name).mkdir()
        (folder / name / "somebody's.txt").write_bytes(b"precious")
        crash_manager(intact(image, folder))
        assert (folder / name / "somebody's.txt").exists(), f"{name} is not ours to remove"


def test_interrupted_folder_deletion_is_completed(image: Image, tmp_path: Path) -> None:
    image.write(tmp_path)
    for name in (f"gone-0.{HEX}-delete", f"orders-0.{HEX}-future"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").write_bytes(b"old")
    crash_manager(intact(image, tmp_path))
    assert [path.name for path in tmp_path.glob(f"*{HEX}*")] == [f"orders-0.{HEX}-stray"]


def _two_segments(folder: Path) -> tuple[list[tuple[int, bytes | None]], int]:
    log = open_log(folder, config=CONFIG)
    for number in range(20):
        append(log, batch([b"%03d" % number * 16]))
    content, second = read_all(log), log.segments[1].base_offset
    log.close()
    return content, second


def _compacted(folder: Path, base: int, offsets: list[int], suffix: str) -> None:
    """Files as a compaction leaves them in place of the segments that held `offsets`."""
    data = b"".join(
        bytes(batch([b"kept"], base_offset=offset, leader_epoch=0)) for offset in offsets
    )
    (folder / f"{base:020d}.log{suffix}").write_bytes(data)
    for kind in ("index", "timeindex"):
        (folder / f"{base:020d}.{kind}{suffix}").write_bytes(b"")


@pytest.mark.parametrize("originals", ["there", "deleted"])
def test_compaction_with_swap_files_is_completed(tmp_path: Path, originals: str) -> None:
    content, second = _two_segments(tmp_path)
    _compacted(tmp_path, 0, [1, second - 1], ".swap")
    if originals == "deleted":
        for path in tmp_path.glob("00000000000000000000.*"):
            if path.suffix != ".swap":
                path.rename(path.with_name(path.name + ".deleted"))
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(clean=True))
    assert read_all(again) == [(1, b"kept"), (second - 1, b"kept"), *content[second:]]
    assert [path.name for path in tmp_path.iterdir() if path.suffix in (".swap", ".deleted")] == []
    close_logs(again)


def test_unfinished_compaction_is_undone(tmp_path: Path) -> None:
    content, second = _two_segments(tmp_path)
    _compacted(tmp_path, 0, [1], ".cleaned")
    _compacted(tmp_path, second, [second], ".swap")  # of the same split: KAFKA-6264
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(clean=True))
    assert read_all(again) == content
    close_logs(again)


@pytest.mark.parametrize("cut", [0, 1, 40, 100])
def test_damaged_swap_file_does_not_replace_segments(tmp_path: Path, cut: int) -> None:
    content, second = _two_segments(tmp_path)
    _compacted(tmp_path, 0, [1, second - 1], ".swap")
    path = tmp_path / "00000000000000000000.log.swap"
    path.write_bytes(path.read_bytes()[:cut])
    again = open_log(tmp_path, config=CONFIG, remembered=CheckpointedState(clean=True))
    if cut:
        assert read_all(again) == content
    else:  # an empty file may be all that a compaction kept; what lay behind it is there
        assert read_all(again)[-(20 - second) :] == content[second:]
    close_logs(again)


def test_log_start_beyond_the_high_watermark_is_ignored(tmp_path: Path) -> None:
    content, _ = _two_segments(tmp_path)
    remembered = CheckpointedState(log_start_offset=93, high_watermark=20, clean=True)
    again = open_log(tmp_path, config=CONFIG, remembered=remembered)
    assert read_all(again) == content
    again.close()
    # but where the tail was lost with a power cut, what is left was deleted by its owner
    remembered = CheckpointedState(log_start_offset=93, high_watermark=95)
    again = open_log(tmp_path, config=CONFIG, remembered=remembered)
    assert (again.log_start_offset, again.log_end_offset) == (93, 93)
    assert append(again, batch(timestamp_ms=NOW_MS)).base_offset == 93
    close_logs(again)


def test_index_entry_into_a_hole_loses_no_record(tmp_path: Path) -> None:
    config = replace(CONFIG, cleanup_policy="compact", segment_bytes=9000)
    log = open_log(tmp_path, config=config)
    for offset in [*range(6), *range(20, 26)]:
        if offset == 20:
            log.roll(NOW_MS, offset)
        sent = batch([b"%03d" % offset * 9], base_offset=offset, leader_epoch=0)
        assert log.append_as_follower(sent, NOW_MS).error is ErrorCode.NONE
    content = read_all(log)
    hollow = log.segments[0]
    assert (hollow.end_offset(), hollow.bound) == (6, 20)
    log.close()
    hollow.path(".index").write_bytes(struct.pack(">ii", 15, 0))
    again = open_log(tmp_path, config=config, remembered=CheckpointedState(clean=True))
    assert read_all(again) == content
    close_logs(again)


def test_second_copy_of_a_log_is_renamed(image: Image, tmp_path: Path) -> None:
    image.write(tmp_path)
    future = tmp_path / f"orders-0.{HEX}-future"
    future.mkdir()
    (future / f"{0:020d}.log").write_bytes(b"old")
    for _ in range(2):
        manager = intact(image, tmp_path)
        assert manager.futures() == []
        crash_manager(manager)
    assert (tmp_path / f"orders-0.{HEX}-stray" / f"{0:020d}.log").read_bytes() == b"old"
