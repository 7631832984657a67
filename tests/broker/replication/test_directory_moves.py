"""A replica moves from one log directory to another while it is written."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.broker.log.helpers import NOW_MS, batch, read_all
from tests.broker.net.raw import run
from tests.broker.replication.hosting import Hosting
from tests.waiting import wait_until
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.replication import directory_moves
from urteil.broker.replication.directory_moves import THROTTLE
from urteil.broker.wire.errors import ErrorCode

NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def dirs(tmp_path: Path) -> list[Path]:
    return [tmp_path / "a", tmp_path / "b"]


def host(dirs: list[Path], **props: str) -> Hosting:
    """A copy is made in steps of 500 bytes, five batches."""
    return Hosting(dirs, props={name.replace("_", "."): value for name, value in props.items()})


def fill(hosting: Hosting, count: int, *, epoch: int = 0) -> PartitionLog:
    """Append to `t-0`, of which all is committed then."""
    partition = hosting.replicas.partition("t", 0)
    assert partition is not None
    for number in range(count):
        data = batch([b"%d" % number], producer=(7, 0, partition.log.log_end_offset))
        assert partition.append(data, 1, NOW_MS, 0.0).error is NONE
    assert partition.log.latest_epoch == epoch
    return partition.log


def lies_in(hosting: Hosting, folder: Path) -> bool:
    log = hosting.logs.get("t", 0)
    return log is not None and log.directory == folder / "t-0"


def test_moved_log_keeps_all_records_and_state(dirs: list[Path]) -> None:
    async def scenario() -> None:
        hosted = host(dirs, log_segment_bytes="500")
        hosted.lead(0)
        fill(hosted, 20)
        hosted.lead(0, epoch=1)
        old = fill(hosted, 5, epoch=1)
        old.increment_log_start_offset(3)
        hosted.lead(0, epoch=2)  # began at the end of the log, so no batch has it
        expected = read_all(old)
        assert hosted.replicas.moves.alter("t", 0, str(dirs[1])) is NONE
        (folder,) = dirs[1].glob("t-0.*-future")
        assert hosted.replicas.moves.alter("t", 0, str(dirs[1])) is NONE, "it is on its way"
        await wait_until(lambda: lies_in(hosted, dirs[1]))
        partition = hosted.replicas.partition("t", 0)
        assert partition is not None
        new = partition.log
        assert new is hosted.logs.get("t", 0)
        assert read_all(new) == expected
        assert (new.log_start_offset, new.high_watermark) == (3, 25)
        assert new.epochs.entries == old.epochs.entries == [(0, 3), (1, 20), (2, 25)]
        assert new.producers.entries[7].last_sequence == 24
        assert new.topic_id == old.topic_id
        assert not folder.exists()
        assert not (dirs[0] / "t-0").exists()
        assert read_all(old) == expected, "who reads the old one may go on"
        fill(hosted, 3, epoch=2)
        assert hosted.replicas.moves.alter("t", 0, str(dirs[1])) is NONE, "it lies there"
        assert hosted.logs.futures() == []
        hosted.logs.tick(NOW_MS + 60_000)
        assert list(dirs[0].glob("t-0*")) == []
        hosted.logs.shutdown()
        again = host(dirs)
        assert lies_in(again, dirs[1])
        assert [log.log_end_offset for log in again.logs.logs()] == [28]
        again.close()

    run(scenario())


def test_records_appended_during_a_move_are_copied(dirs: list[Path]) -> None:
    async def scenario() -> None:
        hosted = host(dirs, **{THROTTLE: "1"})
        hosted.lead(0)
        fill(hosted, 10)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        await wait_until(lambda: hosted.logs.futures()[0].log_end_offset)
        fill(hosted, 10)
        await asyncio.sleep(0)
        assert lies_in(hosted, dirs[0]), "the throttle holds it up"
        assert 0 < hosted.logs.futures()[0].log_end_offset < 10
        del hosted.props[THROTTLE]  # it is looked at once a second
        await wait_until(lambda: lies_in(hosted, dirs[1]))
        log = hosted.logs.get("t", 0)
        assert log is not None
        assert log.log_end_offset == 20
        hosted.close()

    run(scenario())


def test_copy_is_synced_before_it_replaces_the_log(
    dirs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one goes: a power cut must not take what had been synced there."""
    monkeypatch.setattr(directory_moves, "RETRY_MS", 1.0)

    async def scenario() -> None:
        hosted = host(dirs)
        hosted.lead(0)
        fill(hosted, 10).flush()
        fill(hosted, 1)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        await wait_until(lambda: hosted.logs.futures()[0].log_end_offset == 11)
        copy = hosted.logs.futures()[0]
        await wait_until(lambda: copy in hosted.logs._maintenance._flushes)
        assert lies_in(hosted, dirs[0])
        hosted.logs.tick(NOW_MS)
        hosted.clock.ms += 1
        await wait_until(lambda: lies_in(hosted, dirs[1]))
        log = hosted.logs.get("t", 0)
        assert log is not None
        assert log.recovery_point == 11
        hosted.close()

    run(scenario())


def test_log_that_starts_inside_a_batch_is_moved(dirs: list[Path]) -> None:
    async def scenario() -> None:
        hosted = host(dirs)
        hosted.lead(0)
        log = fill(hosted, 1)
        log.append_as_leader(batch([b"%d" % number for number in range(4)]), 0, NOW_MS)
        log.update_high_watermark(5)
        assert log.increment_log_start_offset(3) is NONE
        expected = read_all(log)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        await wait_until(lambda: lies_in(hosted, dirs[1]))
        new = hosted.logs.get("t", 0)
        assert new is not None
        assert read_all(new) == expected
        assert (new.log_start_offset, new.log_end_offset) == (3, 5)
        hosted.close()

    run(scenario())


def test_copy_follows_a_truncation_of_its_log(dirs: list[Path]) -> None:
    async def scenario() -> None:
        hosted = host(dirs, **{THROTTLE: "1"})
        hosted.lead(0)
        log = fill(hosted, 10)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        await wait_until(lambda: hosted.logs.futures()[0].log_end_offset)
        copied = hosted.logs.futures()[0].log_end_offset
        assert 2 < copied < 10
        log.truncate_to(2)
        log.assign_epoch_start(3, 2)
        for number in range(8):
            log.append_as_leader(batch([b"new %d" % number]), 3, NOW_MS)
        expected = read_all(log)
        del hosted.props[THROTTLE]
        await wait_until(lambda: lies_in(hosted, dirs[1]))
        partition = hosted.replicas.partition("t", 0)
        assert partition is not None
        assert read_all(partition.log) == expected
        hosted.close()

    run(scenario())


def test_restart_resumes_a_move(dirs: list[Path]) -> None:
    async def scenario() -> None:
        hosted = host(dirs, **{THROTTLE: "1"})
        hosted.lead(0)
        fill(hosted, 10)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        await wait_until(lambda: hosted.logs.futures()[0].log_end_offset)
        fill(hosted, 5)
        await hosted.replicas.moves.close()
        hosted.close()  # a crash
        again = host(dirs)
        assert all(0 < log.log_end_offset < 10 for log in again.logs.futures())
        assert again.lead(0, epoch=1, is_new=False) == NONE
        await wait_until(lambda: lies_in(again, dirs[1]))
        log = again.logs.get("t", 0)
        assert log is not None
        assert log.log_end_offset == 15
        again.close()

    run(scenario())


def test_move_errors_and_preferred_directories(dirs: list[Path], tmp_path: Path) -> None:
    async def scenario() -> None:
        hosted = host(dirs)
        alter = hosted.replicas.moves.alter
        hosted.lead(0)
        assert alter("t", 0, str(tmp_path / "c")) is ErrorCode.LOG_DIR_NOT_FOUND
        assert alter("t", 9, str(dirs[0])) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        hosted.metadata.topics["t"] = {8: SimpleNamespace()}  # type: ignore[dict-item]
        assert alter("t", 8, str(dirs[0])) is ErrorCode.REPLICA_NOT_AVAILABLE
        assert alter("t" * 220, 0, str(dirs[0])) is ErrorCode.INVALID_TOPIC_EXCEPTION
        for partition in (8, 9):
            hosted.lead(partition)
            log = hosted.logs.get("t", partition)
            assert log is not None
            assert log.directory.parent == dirs[0], "made where it was asked for"
        hosted.close()

    run(scenario())


def test_new_destination_cancels_the_previous_move(dirs: list[Path], tmp_path: Path) -> None:
    async def scenario() -> None:
        hosted = host([*dirs, tmp_path / "c"], **{THROTTLE: "1"})
        hosted.lead(0)
        fill(hosted, 10)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        await wait_until(lambda: hosted.logs.futures()[0].log_end_offset)
        assert hosted.replicas.moves.alter("t", 0, str(tmp_path / "c")) is NONE
        assert [log.directory.parent.name for log in hosted.logs.futures()] == ["c"]
        assert list(dirs[1].glob("*-future")) == []
        assert hosted.replicas.moves.alter("t", 0, str(dirs[0])) is NONE
        assert hosted.logs.futures() == [], "where it lies it may stay"
        assert hosted.replicas.moves.alter("t", 0, str(dirs[1])) is NONE
        hosted.replicas.drop("t", 0, delete=True)
        assert hosted.logs.futures() == []
        assert list(tmp_path.glob("*/*-future")) == []
        hosted.close()

    run(scenario())


def test_failed_destination_leaves_the_replica_in_place(dirs: list[Path]) -> None:
    async def scenario() -> None:
        hosted = host(dirs, **{THROTTLE: "1"})
        hosted.lead(0)
        fill(hosted, 10)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        failed = hosted.logs.directories[1]
        failed.health.fail(OSError(errno.EIO, "broken"))
        assert hosted.replicas.drop_directory(dirs[1]) == []
        hosted.logs.take_offline(failed)
        partition = hosted.replicas.partition("t", 0)
        assert partition is not None
        assert partition.future is None
        fill(hosted, 3)
        assert hosted.replicas.moves.alter("t", 0, str(dirs[1])) is STORAGE
        hosted.close()

    run(scenario())


def test_failed_source_takes_the_partition_offline_and_keeps_the_copy(
    dirs: list[Path],
) -> None:
    async def scenario() -> None:
        hosted = host(dirs, **{THROTTLE: "1"})
        hosted.lead(0)
        fill(hosted, 10)
        hosted.replicas.moves.alter("t", 0, str(dirs[1]))
        await wait_until(lambda: hosted.logs.futures()[0].log_end_offset)
        failed = hosted.logs.directories[0]
        failed.health.fail(OSError(errno.EIO, "broken"))
        assert hosted.replicas.drop_directory(dirs[0]) == [("t", 0)]
        hosted.logs.take_offline(failed)
        assert hosted.lead(0, epoch=1) == STORAGE
        hosted.close()
        again = host(dirs)
        assert again.lead(0, epoch=1) == NONE
        await wait_until(lambda: lies_in(again, dirs[1]))
        again.close()

    run(scenario())
