"""Several log directories: each is opened, fails and goes offline on its own."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.broker.log.damage import Unsynced, crash_manager, quick_folder
from tests.broker.log.helpers import NOW_MS, FixedClock, append, batch, read_all
from tests.broker.log.test_full_disk import FAILURES, FailingStorage
from urteil.broker.log import checkpoints
from urteil.broker.log.log_directory import MisplacedDirectory
from urteil.broker.log.log_manager import LogManager, OfflineLog
from urteil.broker.log.storage import LockedFile, Storage
from urteil.broker.wire.errors import ErrorCode

TOPIC_ID = uuid.UUID(int=9)
PROPS = {"broker.id": "1", "log.segment.bytes": "600", "log.segment.delete.delay.ms": "0"}
A_STEPS = 140

Opener = Callable[..., LogManager]


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "a", tmp_path / "b"]


@pytest.fixture
def start(folders: list[Path]) -> Iterator[Opener]:
    opened: list[LogManager] = []

    def start(storage: Storage | None = None, paths: Sequence[Path] | None = None) -> LogManager:
        for log_manager in opened:
            crash_manager(log_manager)
        manager = LogManager(paths or folders, PROPS, FixedClock(), storage=storage or Unsynced())
        opened.append(manager)
        manager.load("cluster")
        return manager

    yield start
    for log_manager in opened:
        crash_manager(log_manager)


def test_each_directory_has_checkpoints_of_its_own_logs(start: Opener, folders: list[Path]) -> None:
    manager = start()
    for partition in range(3):
        append(manager.get_or_create("t", partition, TOPIC_ID))
    manager.checkpoint_high_watermarks({("t", partition): partition for partition in range(3)})
    manager.checkpoint_recovery_points()
    for name in (checkpoints.HIGH_WATERMARKS, checkpoints.RECOVERY_POINTS):
        rows = [set(checkpoints.read_offsets(Storage(), folder / name)) for folder in folders]
        assert rows == [{("t", 0), ("t", 2)}, {("t", 1)}]


def test_unreadable_directory_goes_offline_and_the_other_serves(
    start: Opener, folders: list[Path]
) -> None:
    manager = start()
    for partition in range(2):
        append(manager.get_or_create("t", partition, TOPIC_ID))
    crash_manager(manager)
    folders[0].rename(folders[0].with_name("away"))
    folders[0].write_bytes(b"no directory")
    manager = start()
    assert list(manager.offline) == [folders[0]]
    assert [directory.path for directory in manager.directories] == [folders[1]]
    assert [log.partition for log in manager.logs()] == [1]
    with pytest.raises(OfflineLog, match=r"t-0 may lie in .*/a, which is offline"):
        manager.get_or_create("t", 0, TOPIC_ID, is_new=False)
    new = manager.get_or_create("t", 2, TOPIC_ID, is_new=True)
    assert new.directory.parent == folders[1]
    folders[0].unlink()
    folders[0].with_name("away").rename(folders[0])
    assert sorted(log.partition for log in start().logs()) == [0, 1, 2]


def test_each_directory_is_recovered_by_its_own_stop_marker(
    start: Opener, folders: list[Path]
) -> None:
    manager = start()
    for partition in range(2):
        log = manager.get_or_create("t", partition, TOPIC_ID)
        for number in range(4):
            append(log, batch([b"%d" % number]))
        log.update_high_watermark(4)
    manager.checkpoint_high_watermarks({("t", 0): 4, ("t", 1): 4})
    manager.shutdown()
    (folders[0] / checkpoints.CLEAN_SHUTDOWN).unlink()
    (folders[0] / checkpoints.RECOVERY_POINTS).write_text("no checkpoint")
    (folders[1] / checkpoints.LOG_STARTS).write_text("no checkpoint")
    with (folders[0] / "t-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    manager = start()
    logs = {log.partition: log for log in manager.logs()}
    assert [logs[n].recovered_cut_bytes for n in range(2)] == [4, 0]
    assert [logs[n].recovery_point for n in range(2)] == [0, 4]
    assert [logs[n].log_end_offset for n in range(2)] == [4, 4]


def test_damaged_meta_properties_takes_the_directory_offline(
    start: Opener, folders: list[Path]
) -> None:
    start().shutdown()
    (folders[1] / checkpoints.META_PROPERTIES).write_text("version=1\n")
    assert list(start().offline) == [folders[1]]
    (folders[0] / checkpoints.META_PROPERTIES).write_text("version=1\nbroker.id=1\n")
    with pytest.raises(OSError, match="delete the file"):
        start()


def test_meta_properties_without_a_version_has_version_0(
    start: Opener, folders: list[Path]
) -> None:
    start().shutdown()
    (folders[1] / checkpoints.META_PROPERTIES).write_text("broker.id=1\n")
    assert not start().offline


def test_misplaced_directory_ends_the_start(start: Opener, folders: list[Path]) -> None:
    start().shutdown()
    meta = folders[1] / checkpoints.META_PROPERTIES
    meta.write_text(meta.read_text().replace("broker.id=1", "broker.id=2"))
    with pytest.raises(MisplacedDirectory, match="doesn't match stored"):
        start()
    meta.unlink()
    for folder, topic_id in zip(folders, (TOPIC_ID, uuid.UUID(int=3)), strict=True):
        (folder / "t-0").mkdir()
        checkpoints.write_topic_id(Storage(), folder / "t-0", topic_id)
        (folder / "t-0" / "00000000000000000000.log").write_bytes(batch())
    with pytest.raises(MisplacedDirectory, match="are the same partition"):
        start()

    class Locked(Unsynced):
        def lock(self, path: Path):  # type: ignore[no-untyped-def]
            raise LockedFile("taken")

    with pytest.raises(LockedFile):
        start(Locked())


@pytest.mark.parametrize("code", FAILURES, ids=[errno.errorcode[code] for code in FAILURES])
def test_failure_of_one_disk_leaves_the_other_serving(code: int) -> None:
    """Nothing acknowledged is lost in either; after the first error the failed one is let alone."""
    never = 0
    for step in range(2 * FAILURES.index(code), A_STEPS, 6):
        with quick_folder() as name:
            never += _fail_at(step, code, Path(name))
    assert 0 < never < A_STEPS // 12, "the steps should reach the end of the work and a bit beyond"


def _fail_at(step: int, code: int, folder: Path) -> int:
    paths = [folder / "a", folder / "b"]
    storage = FailingStorage(step, code, within=paths[0])
    manager = LogManager(paths, PROPS, FixedClock(), storage=storage)
    manager.load("cluster")
    acknowledged: dict[int, list[tuple[int, bytes | None]]] = {0: [], 1: [], 2: []}
    for number in range(12):
        for partition, done in acknowledged.items():
            if _acknowledge(manager, partition, number):
                done.append((len(done), b"%d" % number))
        _keep_up(manager, number)
    assert not manager.failed_directories()
    assert list(manager.offline) == ([paths[0]] if storage.left < 0 else [])
    on_b = [log.partition for log in manager.logs() if log.directory.parent == paths[1]]
    assert on_b
    assert all(
        len(acknowledged[partition]) == 12
        for partition in on_b
        if storage.left >= 0 or partition == 1
    )
    manager.shutdown()
    crash_manager(manager)
    again = LogManager(paths, PROPS, FixedClock(), storage=Unsynced())
    again.load("cluster")
    for partition, done in acknowledged.items():
        log = again.get("t", partition)
        records = read_all(log) if log is not None else []
        assert records[: len(done)] == done, f"step {step}, partition {partition}"
        assert len(records) - len(done) in (0, 1), f"step {step}"
    crash_manager(again)
    return int(not storage.failed)


def _acknowledge(manager: LogManager, partition: int, number: int) -> bool:
    """As LeaderAndIsr and Produce do it: a new partition at first, a known one from then on."""
    try:
        log = manager.get_or_create("t", partition, TOPIC_ID, is_new=number == 0)
    except OSError:
        return False
    result = log.append_as_leader(batch([b"%d" % number]), 0, NOW_MS)
    assert result.error in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
    return result.error is ErrorCode.NONE


def _keep_up(manager: LogManager, number: int) -> None:
    """The periodic work of the broker, and its handling of failed directories."""
    for failed in manager.failed_directories():
        held = [log for log in manager.logs() if log.directory.parent == failed.path]
        for log in held:
            refused = log.append_as_leader(batch(), 0, NOW_MS)
            assert refused.error is ErrorCode.KAFKA_STORAGE_ERROR
        manager.take_offline(failed)
        assert not set(held) & set(manager.logs())
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks({})
    manager.tick(NOW_MS + number)
    for failed in manager.failed_directories():
        manager.take_offline(failed)


def test_new_log_is_created_in_another_directory_after_a_failure(
    start: Opener, folders: list[Path]
) -> None:
    class NoRoom(Unsynced):
        def make_directory(self, path: Path) -> None:
            if path.parent == folders[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            super().make_directory(path)

    manager = start(NoRoom())
    log = manager.get_or_create("t", 0, TOPIC_ID)
    assert log.directory.parent == folders[1]
    assert [failed_directory.path for failed_directory in manager.failed_directories()] == [
        folders[0]
    ]


class _Killed(BaseException):
    """The process was killed."""


class _Dying(FailingStorage):
    """A process that is killed before its n-th change, so that nothing is tidied up."""

    def change(self, path: Path, *, frees: bool = False) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Killed


def test_kill_at_any_step_of_a_move_loses_nothing() -> None:
    ends = set()
    for step in range(40):
        with quick_folder() as name:
            ends.add(_die_at(step, Path(name)))
    assert ends == {"a", "a with a copy", "b"}


def _die_at(step: int, folder: Path) -> str:
    """Returns where the log lies after the next start."""
    paths = [folder / "a", folder / "b"]
    storage = _Dying(1 << 30, errno.EIO)
    manager = LogManager(paths, PROPS, FixedClock(), storage=storage)
    manager.load("cluster")
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for number in range(12):
        append(log, batch([b"%d" % number]), epoch=number // 6)
    expected = read_all(log)
    storage.left = step
    try:
        copy = manager.create_future("t", 0, paths[1])
        data = memoryview(b"".join(log.read(0, 1 << 20, upto=6).records))
        copy.append_as_follower(data, NOW_MS)
        while copy.log_end_offset < 12:
            read = log.read(copy.log_end_offset, 300, upto=12)
            copy.append_as_follower(memoryview(b"".join(read.records)), NOW_MS)
        manager.promote_future("t", 0)
        manager.tick(NOW_MS)
        manager.tick(NOW_MS + 1)
    except _Killed:
        pass
    crash_manager(manager)
    again = LogManager(paths, PROPS, FixedClock(), storage=Unsynced())
    again.load("cluster")
    partition_log = again.get("t", 0)
    assert partition_log is not None
    assert read_all(partition_log) == expected, f"step {step}"
    assert len([log for log in again.logs() if log.topic == "t"]) == 1
    again.tick(NOW_MS)
    assert len(list(folder.glob("*/t-0"))) == 1, "an older copy is gone"
    where = partition_log.directory.parent.name
    has_copy = again.future("t", 0) is not None
    crash_manager(again)
    return f"{where} with a copy" if has_copy else where
