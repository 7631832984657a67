import errno
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, FixedClock, append, batch
from urteil.broker.log import checkpoints
from urteil.broker.log.log_directory import DamagedMeta, InconsistentMeta
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Buffer, File, Storage
from urteil.broker.wire.errors import ErrorCode

TOPIC_ID = uuid.UUID(int=77)
Opener = Callable[..., LogManager]


@pytest.fixture
def opened() -> Iterator[list[LogManager]]:
    managers: list[LogManager] = []
    yield managers
    for manager in managers:
        crash(manager)


@pytest.fixture
def start(tmp_path: Path, opened: list[LogManager]) -> Opener:
    def start(
        props: dict[str, str] | None = None,
        *,
        dirs: Sequence[Path] = (tmp_path,),
        storage: Storage | None = None,
        clock: FixedClock | None = None,
    ) -> LogManager:
        values = {"broker.id": "1", **(props or {})}
        manager = LogManager(dirs, values, clock or FixedClock(), storage=storage)
        opened.append(manager)
        manager.load("cluster")
        return manager

    return start


def crash(manager: LogManager) -> None:
    """Close the folders without writing, as a crash does."""
    for directory in manager._directories:
        directory.close()


def test_clean_stop_and_start_keeps_all_logs(start: Opener, tmp_path: Path) -> None:
    manager = start()
    log = manager.get_or_create("orders", 3, TOPIC_ID)
    append(log, batch([b"a", b"b"]))
    manager.checkpoint_high_watermarks({("orders", 3): 1, ("elsewhere", 0): 7})
    manager.shutdown(broker_epoch=12)
    marker = tmp_path / ".kafka_cleanshutdown"
    assert marker.read_text() == '{"version":0,"brokerEpoch":12}'
    assert (tmp_path / checkpoints.RECOVERY_POINTS).read_text() == "0\n1\norders 3 2\n"
    assert (tmp_path / checkpoints.HIGH_WATERMARKS).read_text() == "0\n1\norders 3 1\n"
    again = start()
    assert not marker.exists()
    assert again.high_watermark_checkpoint("orders", 3) == 1
    assert again.high_watermark_checkpoint("elsewhere", 0) == 0
    (log,) = again.logs()
    assert (log.topic, log.partition, log.topic_id) == ("orders", 3, TOPIC_ID)
    assert (log.log_end_offset, log.recovery_point) == (2, 2)


def test_crash_recovers_from_the_recovery_point(start: Opener, tmp_path: Path) -> None:
    manager = start({"log.segment.bytes": "300"})
    log = manager.get_or_create("orders", 0, TOPIC_ID)
    for _ in range(12):
        append(log)
    manager.tick(NOW_MS)  # syncs what was rolled
    manager.tick(NOW_MS)
    assert log.recovery_point == log.segments.active_segment.base_offset > 0
    manager.checkpoint_recovery_points()
    point = log.recovery_point
    with open(log.segments.active_segment.file.path, "ab") as file:
        file.write(b"torn")
    crash(manager)
    again = start().get("orders", 0)
    assert again is not None
    assert (again.log_end_offset, again.recovered_cut_bytes) == (12, 4)
    assert again.recovery_point == point


def test_truncation_lowers_the_recovery_point_checkpoint_at_once(
    start: Opener, tmp_path: Path
) -> None:
    manager = start()
    log = manager.get_or_create("orders", 0, TOPIC_ID)
    for _ in range(5):
        append(log)
    log.flush()
    manager.checkpoint_recovery_points()
    log.truncate_to(2)
    assert (tmp_path / checkpoints.RECOVERY_POINTS).read_text() == "0\n1\norders 0 2\n"


def test_lowered_log_start_survives_a_crash(start: Opener) -> None:
    manager = start()
    log = manager.get_or_create("orders", 0, TOPIC_ID)
    for _ in range(8):
        append(log)
    log.update_high_watermark(8)
    log.increment_log_start_offset(6)
    manager.checkpoint_log_start_offsets()
    log.truncate_fully_and_start_at(2)  # the leader's log, elected unclean, is another one
    for _ in range(7):
        append(log)
    crash(manager)
    again = start().get("orders", 0)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (2, 9)


def test_deletion_renames_the_folder_and_removes_it_later(start: Opener, tmp_path: Path) -> None:
    clock = FixedClock()
    manager = start({"log.segment.delete.delay.ms": "100"}, clock=clock)
    log = manager.get_or_create("a-b", 0, TOPIC_ID, {"file.delete.delay.ms": "1"})
    append(log)
    manager.checkpoint_recovery_points()
    manager.checkpoint_high_watermarks({("a-b", 0): 1})
    manager.delete("a-b", 0)
    assert manager.get("a-b", 0) is None
    (folder,) = tmp_path.glob("a-b-0.*-delete")
    assert not (tmp_path / "a-b-0").exists()
    manager.get_or_create("a-b", 0, uuid.UUID(int=5))
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS):
        assert checkpoints.read_offsets(Storage(), tmp_path / name) == {}, "not to be inherited"
    manager.tick(NOW_MS + 99)
    assert folder.exists()
    manager.tick(NOW_MS + 100)
    assert not folder.exists()
    manager.get_or_create("c", 0)
    manager.delete("c", 0)
    crash(manager)
    again = start()
    assert [(log.topic, log.log_end_offset) for log in again.logs()] == [("a-b", 0)]
    assert list(tmp_path.glob("*-delete")) == []


def test_log_start_inside_a_segment_is_checkpointed(start: Opener, tmp_path: Path) -> None:
    manager = start()
    log = manager.get_or_create("orders", 0)
    for _ in range(5):
        append(log)
    log.update_high_watermark(5)
    log.increment_log_start_offset(3)
    manager.checkpoint_log_start_offsets()
    assert (tmp_path / checkpoints.LOG_STARTS).read_text() == "0\n1\norders 0 3\n"
    crash(manager)
    again = start().get("orders", 0)
    assert again is not None
    assert again.log_start_offset == 3


def test_log_adopts_a_late_topic_id(start: Opener, tmp_path: Path) -> None:
    manager = start()
    assert manager.get_or_create("t", 0).topic_id == checkpoints.ZERO_UUID
    assert manager.get_or_create("t", 0, TOPIC_ID).topic_id == TOPIC_ID
    crash(manager)
    assert start().get_or_create("t", 0).topic_id == TOPIC_ID


def test_new_log_is_created_in_the_directory_with_fewest_logs(
    start: Opener, tmp_path: Path
) -> None:
    manager = start(dirs=[tmp_path / "a", tmp_path / "b"])
    for partition in range(4):
        manager.get_or_create("t", partition)
    assert [log.directory.parent.name for log in manager.logs()] == ["a", "b", "a", "b"]


def test_directory_of_another_broker_or_cluster_is_rejected(start: Opener, tmp_path: Path) -> None:
    start().shutdown()
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert lines[0] == "#"
    assert lines[2:] == ["broker.id=1", "version=0", "cluster.id=cluster"]
    with pytest.raises(InconsistentMeta, match=r"broker\.id 2"):
        start({"broker.id": "2"})
    other = LogManager([tmp_path / "x"], {"broker.id": "1"}, FixedClock())
    other.load("other")
    other.shutdown()
    with pytest.raises(InconsistentMeta, match="Cluster ID"):
        start(dirs=[tmp_path / "x"])


@pytest.mark.parametrize("meta", ["", "broker.id=1\n", "directory.id=eW91LWFyZS1hLWRpci4aaa\n"])
def test_incomplete_meta_properties_are_completed(start: Opener, tmp_path: Path, meta: str) -> None:
    (tmp_path / "meta.properties").write_text(meta)
    start().shutdown()
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    kept = ["directory.id=eW91LWFyZS1hLWRpci4aaQ"] if "directory" in meta else []
    assert lines[2:] == ["broker.id=1", "version=0", "cluster.id=cluster", *kept]


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ("version=1\nnode.id=1\n", "version '1', expected 0"),
        ("directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "'AAAAAAAAAAAAAAAAAAAAAQ' is reserved"),
        ("directory.id=short\n", "'short' is not a directory id"),
    ],
)
def test_invalid_meta_properties_are_rejected(
    start: Opener, tmp_path: Path, meta: str, why: str
) -> None:
    (tmp_path / "meta.properties").write_text(meta)
    with pytest.raises(DamagedMeta, match=why):
        start()
    assert (tmp_path / "meta.properties").read_text() == meta


def test_locked_directory_is_rejected(start: Opener, tmp_path: Path) -> None:
    start()
    program = (
        "import sys; from pathlib import Path; from urteil.broker.log.storage import Storage; "
        "Storage().lock(Path(sys.argv[1]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / ".lock")], capture_output=True, timeout=240
    )
    assert run.returncode != 0
    assert b"BlockingIOError" in run.stderr


def test_flush_after_messages_and_after_time(start: Opener) -> None:
    manager = start({"log.flush.interval.messages": "3", "log.flush.interval.ms": "1000"})
    log = manager.get_or_create("t", 0)
    points = []
    for _ in range(4):
        append(log)
        points.append(log.recovery_point)
    assert points == [0, 0, 3, 3]
    manager.tick(NOW_MS + 999)
    manager.tick(NOW_MS + 999)
    assert log.recovery_point == 3
    manager.tick(NOW_MS + 1000)
    manager.tick(NOW_MS + 1000)
    assert log.recovery_point == 4


def test_retention_runs_at_its_interval(start: Opener) -> None:
    manager = start(
        {
            "log.retention.check.interval.ms": "1000",
            "log.initial.task.delay.ms": "50",
            "log.segment.bytes": "300",
        }
    )
    log = manager.get_or_create("t", 0, TOPIC_ID, {"retention.ms": "10"})
    for end in (10, 20):
        for _ in range(10):
            append(log)
        log.update_high_watermark(end)
        due_ms = NOW_MS + 50 if end == 10 else NOW_MS + 1050
        manager.tick(due_ms - 1)
        assert log.log_start_offset == end - 10
        manager.tick(due_ms)
        assert log.log_start_offset == end


def test_producer_expiration_waits_for_its_first_interval(start: Opener) -> None:
    """`PeriodicProducerExpirationCheck` of Apache Kafka waits for its first interval, too."""
    manager = start(
        {
            "producer.id.expiration.ms": "1000",
            "producer.id.expiration.check.interval.ms": "500",
        }
    )
    log = manager.get_or_create("t", 0, TOPIC_ID)
    append(log, batch(producer=(9, 0, 0), timestamp_ms=NOW_MS - 5000))
    manager.tick(NOW_MS + 499)
    assert set(log.producers.entries) == {9}
    manager.tick(NOW_MS + 500)
    assert log.producers.entries == {}


def test_high_watermark_checkpoint_is_written_in_the_background(tmp_path: Path) -> None:
    jobs: list[Callable[[], None]] = []
    manager = LogManager([tmp_path], {"broker.id": "1"}, FixedClock(), background=jobs.append)
    manager.load("cluster")
    manager.get_or_create("t", 0, TOPIC_ID)
    target = tmp_path / checkpoints.HIGH_WATERMARKS
    target.unlink()
    manager.checkpoint_high_watermarks({("t", 0): 5})
    assert not target.exists(), "the caller does not wait for the disk"
    jobs.pop()()
    assert checkpoints.read_offsets(Storage(), target) == {("t", 0): 5}
    manager.tick(NOW_MS)
    assert manager.failed_directories() == []
    target.unlink()
    target.mkdir()
    manager.checkpoint_high_watermarks({("t", 0): 6})
    jobs.pop()()
    manager.tick(NOW_MS)
    assert manager.failed_directories() == manager.directories
    crash(manager)


def test_late_checkpoint_write_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    """A truncation writes the recovery point at once, whatever still waits in the background."""
    jobs: list[Callable[[], None]] = []
    manager = LogManager([tmp_path], {"broker.id": "1"}, FixedClock(), background=jobs.append)
    manager.load("cluster")
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for _ in range(5):
        append(log)
    log.flush()
    manager.checkpoint_recovery_points()
    log.truncate_to(2)
    for job in jobs:
        job()
    target = tmp_path / checkpoints.RECOVERY_POINTS
    assert checkpoints.read_offsets(Storage(), target) == {("t", 0): 2}
    crash(manager)


class _Full(Storage):
    """A disk that cuts a write once it is `full`, and fails to sync once it is `broken`."""

    full = False
    broken = False

    def open(self, path: Path, *, create: bool = False) -> File:
        file = super().open(path, create=create)
        return _FullFile(self, file) if path.suffix == ".log" else file


class _FullFile(File):
    __slots__ = ("_storage",)

    def __init__(self, storage: _Full, file: File) -> None:
        super().__init__(file.path, file._fd)
        self._storage = storage

    def write_at(self, buffers: Sequence[Buffer], size: int, position: int) -> None:
        if self._storage.full:
            super().write_at([b"".join(buffers)[: size // 2]], size // 2, position)
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write_at(buffers, size, position)

    def sync(self) -> None:
        if self._storage.broken:
            raise OSError(errno.EIO, "Input/output error")
        super().sync()


def test_failed_write_rejects_later_writes_and_the_clean_stop(
    start: Opener, tmp_path: Path
) -> None:
    storage = _Full()
    manager = start(storage=storage)
    log = manager.get_or_create("t", 0)
    append(log)
    storage.full = True
    assert log.append_as_leader(batch(), 0, NOW_MS).error is ErrorCode.KAFKA_STORAGE_ERROR
    storage.full = False
    assert log.append_as_leader(batch(), 0, NOW_MS).error is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.append_as_follower(batch(base_offset=1), NOW_MS).error is (
        ErrorCode.KAFKA_STORAGE_ERROR
    )
    assert manager.failed_directories() == manager.directories
    assert log.log_end_offset == 1
    assert log.segments.active_segment.file.size() == len(batch())
    manager.shutdown()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert start().get_or_create("t", 0).log_end_offset == 1


def test_append_with_a_failed_sync_is_not_acknowledged(start: Opener) -> None:
    storage = _Full()
    log = start({"log.flush.interval.messages": "1"}, storage=storage).get_or_create("t", 0)
    append(log)
    storage.broken = True
    result = log.append_as_leader(batch(), 0, NOW_MS)
    assert result.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 1


def test_changed_settings_apply_to_every_log(tmp_path: Path) -> None:
    """A topic's own settings stand above the broker's; nonsense changes nothing."""
    props = {"log.retention.ms": "5"}
    manager = LogManager([tmp_path / "a", tmp_path / "b"], props, FixedClock())
    manager.load()
    first, other = manager.get_or_create("one", 0), manager.get_or_create("other", 0)
    future = manager.create_future("one", 0, next(p for p in manager.paths if p != _parent(first)))
    own = {"one": {"retention.ms": "7"}, "other": {}}
    props["log.retention.ms"] = "6"
    manager.configure(lambda topic: own[topic])
    assert [log.config.retention_ms for log in (first, other, future)] == [7, 6, 7]
    manager.configure(lambda _: {"retention.ms": "8"}, "other")
    assert [log.config.retention_ms for log in (first, other, future)] == [7, 8, 7]
    manager.configure(lambda _: {"retention.ms": "none"}, "other")
    assert other.config.retention_ms == 8
    crash(manager)


def _parent(log: PartitionLog) -> Path:
    return log.directory.parent
