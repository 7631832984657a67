"""A log directory fails under the partitions of a broker."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.broker.log.damage import Unsynced
from tests.broker.net.raw import run
from tests.broker.replication.hosting import TOPIC_ID, Hosting
from tests.broker.replication.plain import records
from tests.waiting import wait_until
from urteil.broker.base.offload import run_steps
from urteil.broker.log.storage import Buffer, File
from urteil.broker.replication.directory_failures import DirectoryFailures
from urteil.broker.replication.partition_read import FetchTerms
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, StopReplicaRequest
from urteil.broker.zookeeper.session import ConnectionLoss

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


class Breaking(Unsynced):
    """Every read or write of a log below `broken` is an I/O error."""

    broken: Path | None = None
    code = errno.EIO

    def open(self, path: Path, *, create: bool = False) -> File:
        return _BreakingFile(self, super().open(path, create=create))

    def check(self, path: Path) -> None:
        if self.broken is not None and path.is_relative_to(self.broken):
            raise OSError(self.code, os.strerror(self.code), str(path))


class _BreakingFile(File):
    __slots__ = ("_storage",)

    def __init__(self, storage: Breaking, file: File) -> None:
        super().__init__(file.path, file._fd)
        self._storage = storage

    def read_at(self, size: int, position: int) -> bytes:
        self._storage.check(self.path)
        return super().read_at(size, position)

    def write_at(self, buffers: Sequence[Buffer], size: int, position: int) -> None:
        self._storage.check(self.path)
        super().write_at(buffers, size, position)

    def sync(self) -> None:
        self._storage.check(self.path)


class Session:
    """A ZooKeeper session that loses its connection once."""

    def __init__(self) -> None:
        self.created: list[tuple[str, bytes]] = []
        self.calls = 0

    async def create(self, path: str, data: bytes, *, sequence: bool) -> None:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionLoss
        assert sequence
        self.created.append((path, data))


class Broken:
    """Partitions 0 and 2 in `a`, 1 in `b`, all led; the disk of `a` can be broken."""

    def __init__(self, folder: Path) -> None:
        self.storage = Breaking()
        self.dirs = [folder / "a", folder / "b"]
        self.hosting = Hosting(self.dirs, storage=self.storage)
        self.replicas = self.hosting.replicas
        assert [self.hosting.lead(partition) for partition in range(3)] == [0, 0, 0]
        self.halted: list[OSError] = []
        self.zk = Session()
        zk: Any = self.zk
        self.failures = DirectoryFailures(
            self.hosting.logs, self.replicas, zk, 1, self.halted.append
        )
        self.failures.begin()

    async def append(self, partition: int, *, acks: int = 1) -> ErrorCode:
        answers = await self.replicas.append(1000, acks, {("t", partition): records(1)})
        return answers["t", partition].error

    async def fetch(self, partition: int) -> ErrorCode:
        asked = FetchRequest.FetchPartition(
            partition=partition, fetch_offset=0, partition_max_bytes=1 << 20
        )
        terms = FetchTerms(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20)
        (read,) = await self.replicas.fetch_reader.fetch(
            terms, [self.replicas.fetch_target("t", asked)]
        )
        return read.error


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_failed_write_takes_the_directory_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        broken = Broken(tmp_path)
        led: list[tuple[int, bool]] = []
        broken.replicas.on_leadership(
            lambda _, partition, leads, __: led.append((partition, leads))
        )
        assert await broken.append(0) is ErrorCode.NONE
        broken.storage.broken = broken.dirs[0]
        assert await broken.append(0) is STORAGE
        broken.storage.broken = None
        assert await broken.append(2) is STORAGE, "no appends after an I/O error (KAFKA-10778)"
        await settle()
        for partition, expected in ((0, STORAGE), (1, ErrorCode.NONE), (2, STORAGE)):
            assert await broken.append(partition) is expected
            assert await broken.fetch(partition) is expected
            assert broken.replicas.find_partition("t", partition)[1] is expected
        assert led == [(0, False), (2, False)]
        assert list(broken.hosting.logs.offline) == [broken.dirs[0]]
        assert broken.halted == []
        broken.hosting.close()

    run(scenario())


def test_failed_read_takes_the_directory_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        broken = Broken(tmp_path)
        assert await broken.append(0) is ErrorCode.NONE
        broken.storage.broken = broken.dirs[0]
        assert await broken.fetch(0) is STORAGE
        await settle()
        assert broken.replicas.find_partition("t", 2)[1] is STORAGE
        assert await broken.append(1) is ErrorCode.NONE
        broken.hosting.close()

    run(scenario())


def test_read_without_free_descriptors_does_not_fail_the_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        broken = Broken(tmp_path)
        assert await broken.append(0) is ErrorCode.NONE
        broken.storage.broken, broken.storage.code = broken.dirs[0], errno.EMFILE
        assert await broken.fetch(0) is STORAGE
        await settle()
        broken.storage.broken = None
        assert await broken.fetch(0) is ErrorCode.NONE
        assert await broken.append(2) is ErrorCode.NONE
        broken.hosting.close()

    run(scenario())


def test_failed_background_job_takes_the_directory_offline_at_once(tmp_path: Path) -> None:
    """A checkpoint or a sync on another thread, long before the next tick."""

    async def scenario() -> None:
        broken = Broken(tmp_path)
        assert await broken.append(0) is ErrorCode.NONE
        log, (directory, other) = broken.hosting.logs.get("t", 0), broken.hosting.logs.directories
        assert log is not None
        job = log.create_flush_job(log.log_end_offset)
        broken.storage.broken = broken.dirs[0]
        await asyncio.to_thread(job.run)
        log.finish_flush(job)
        assert log.recovery_point == 0
        await settle()
        assert await broken.append(2) is STORAGE
        shutil.rmtree(other.path)
        other.put_recovery_points()
        await asyncio.to_thread(other.write_checkpoints_in_background)
        await settle()
        assert [type(error) for error in broken.halted] == [FileNotFoundError]
        assert directory.health.failure is not other.health.failure
        broken.failures.close()

    run(scenario())


def test_waiting_produce_ends_when_the_directory_fails(tmp_path: Path) -> None:
    async def scenario() -> None:
        broken = Broken(tmp_path)
        assert broken.hosting.lead(0, epoch=1, replicas=(1, 2)) == 0
        waiting = asyncio.ensure_future(broken.append(0, acks=-1))
        await settle()
        assert not waiting.done()
        broken.hosting.logs.directories[0].health.fail(OSError(errno.EIO, "broken"))
        assert await waiting is STORAGE
        broken.hosting.close()

    run(scenario())


def test_controller_requests_get_the_storage_error_until_restart(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        broken = Broken(tmp_path)
        broken.hosting.logs.directories[0].health.fail(OSError(errno.EIO, "broken"))
        await settle()
        assert broken.hosting.lead(0, epoch=1) == STORAGE
        assert broken.hosting.lead(0, epoch=1, is_new=True) == STORAGE
        assert broken.hosting.lead(1, epoch=1) == ErrorCode.NONE
        assert broken.hosting.lead(3, is_new=False) == STORAGE, (
            "it may lie in the offline directory"
        )
        assert broken.hosting.lead(4, is_new=True) == ErrorCode.NONE
        log = broken.hosting.logs.get("t", 4)
        assert log is not None
        assert log.directory.parent == broken.dirs[1]
        stop = StopReplicaRequest(
            controller_id=1,
            controller_epoch=1,
            broker_epoch=5,
            topic_states=[
                StopReplicaRequest.StopReplicaTopicState(
                    topic_name="t",
                    partition_states=[
                        StopReplicaRequest.StopReplicaPartitionState(
                            partition_index=index, leader_epoch=-2, delete_partition=True
                        )
                        for index in (0, 1)
                    ],
                )
            ],
        )
        answers = run_steps(broken.hosting.control.stop_replica(stop)).partition_errors
        assert [each.error_code for each in answers] == [STORAGE, ErrorCode.NONE]
        broken.hosting.close()
        again = Hosting(broken.dirs)
        log = again.logs.get("t", 0)
        assert log is not None
        assert log.topic_id == TOPIC_ID
        again.close()

    run(scenario())


def test_failure_is_reported_to_the_controller_through_zookeeper(tmp_path: Path) -> None:
    async def scenario() -> None:
        broken = Broken(tmp_path)
        broken.hosting.logs.directories[0].health.fail(OSError(errno.EIO, "broken"))
        await wait_until(lambda: broken.zk.created)
        ((path, data),) = broken.zk.created
        assert path == "/log_dir_event_notification/log_dir_event_"
        assert json.loads(data) == {"version": 1, "broker": 1, "event": 1}
        broken.failures.close()
        broken.hosting.close()

    run(scenario())


def test_failure_of_the_last_directory_halts_the_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        broken = Broken(tmp_path)
        for directory in broken.hosting.logs.directories:
            directory.health.fail(OSError(errno.EIO, f"{directory.path} broke"))
        await settle()
        assert [str(error) for error in broken.halted] == [f"[Errno 5] {broken.dirs[1]} broke"]
        broken.failures.close()

    run(scenario())


def test_directory_offline_at_start_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "a").write_bytes(b"no directory")
        hosting = Hosting([tmp_path / "a", tmp_path / "b"])
        zk: Any = Session()
        failures = DirectoryFailures(hosting.logs, hosting.replicas, zk, 1, lambda _: None)
        failures.begin()
        await settle()
        assert zk.calls == 1
        failures.close()
        hosting.close()

    run(scenario())


def test_fetcher_drops_only_the_failed_partition(tmp_path: Path) -> None:
    """Its fetcher continues with the partitions in other directories."""
    from urteil.broker.replication.fetchers import _Fetcher
    from urteil.broker.replication.followed_partition import FollowedPartition

    async def scenario() -> None:
        broken = Broken(tmp_path)
        fetcher = _Fetcher.__new__(_Fetcher)
        fetcher.following = {}
        fetcher._clock = broken.hosting.clock  # type: ignore[assignment]
        for partition in (0, 1):
            followed = broken.replicas.partition("t", partition)
            assert followed is not None
            following = FollowedPartition(followed)
            fetcher.following[following.key] = following
        broken.storage.broken = broken.dirs[0]
        sent = SimpleNamespace(
            error_code=0,
            diverging_epoch=SimpleNamespace(epoch=-1, end_offset=-1),
            records=records(1),
            high_watermark=0,
            log_start_offset=0,
        )
        for following in list(fetcher.following.values()):
            fetcher._apply_partition(following, sent)  # type: ignore[arg-type]
        assert list(fetcher.following) == [("t", 1)]
        await settle()
        assert broken.replicas.find_partition("t", 1)[0] is not None
        broken.hosting.close()

    run(scenario())
