"""DeleteRecords: errors, and the wait for the followers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.broker.log.helpers import NOW_MS, batch
from tests.broker.net.raw import run
from tests.broker.replication.hosting import Hosting
from urteil.broker.replication.record_deletion import DeletionResult, RecordDeletion
from urteil.broker.wire.errors import ErrorCode

NONE = ErrorCode.NONE


class Led:
    """`t-0` with 10 records, all committed; 2 and 3 follow, of which 3 may be dead."""

    def __init__(self, folder: Path, *, alive: tuple[int, ...] = (1, 2, 3), **topic: str) -> None:
        overrides = {name.replace("_", "."): value for name, value in topic.items()}
        self.hosting = Hosting([folder], overrides=lambda _: overrides)
        self.hosting.metadata.brokers = {broker: SimpleNamespace() for broker in alive}  # type: ignore[misc]
        assert self.hosting.lead(0, replicas=(1, 2, 3)) == NONE
        partition = self.hosting.replicas.partition("t", 0)
        assert partition is not None
        self.partition = partition
        assert partition.append(batch([b"v"] * 10), 1, NOW_MS, 0.0).error is NONE
        for broker in (2, 3):
            self.follow(broker, 10, 0)
        assert partition.log.high_watermark == 10

    def follow(self, broker: int, offset: int, start: int) -> None:
        self.partition.record_follower_fetch(broker, offset, start, 0.0)

    async def delete(
        self, offset: int, *, timeout_ms: int = 5000, partition: int = 0
    ) -> DeletionResult:
        offsets: Mapping[Any, int] = {("t", partition): offset}
        answers = await RecordDeletion(self.hosting.replicas).run(offsets, timeout_ms)
        return answers["t", partition]


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_deletion_waits_for_every_live_follower(tmp_path: Path) -> None:
    async def scenario() -> None:
        led = Led(tmp_path)
        answer = asyncio.ensure_future(led.delete(4))
        await settle()
        assert led.partition.log.log_start_offset == 4
        led.follow(2, 10, 4)
        await settle()
        assert not answer.done()
        led.follow(3, 10, 6)
        assert await answer == DeletionResult(NONE, 4)
        led.hosting.close()

    run(scenario())


def test_deletion_does_not_wait_for_dead_followers(tmp_path: Path) -> None:
    async def scenario() -> None:
        led = Led(tmp_path)
        answer = asyncio.ensure_future(led.delete(-1))
        await settle()
        led.follow(2, 10, 10)
        del led.hosting.metadata.brokers[3]
        await settle()
        assert not answer.done()
        led.hosting.replicas.shrink_isrs()
        assert await answer == DeletionResult(NONE, 10)
        led.hosting.close()

    run(scenario())


def test_deletion_errors(tmp_path: Path) -> None:
    async def scenario() -> None:
        led = Led(tmp_path)
        assert await led.delete(11) == DeletionResult(ErrorCode.OFFSET_OUT_OF_RANGE)
        assert await led.delete(-2) == DeletionResult(ErrorCode.OFFSET_OUT_OF_RANGE)
        assert await led.delete(3, partition=1) == DeletionResult(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        assert led.partition.log.log_start_offset == 0
        assert await led.delete(5, timeout_ms=20) == DeletionResult(ErrorCode.REQUEST_TIMED_OUT, 0)
        assert led.partition.log.log_start_offset == 5, "the leader's part is done"
        answer = asyncio.ensure_future(led.delete(7))
        await settle()
        led.partition.leader_id = 2
        led.partition._notify_all()
        assert await answer == DeletionResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert await led.delete(7) == DeletionResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        led.hosting.close()

    run(scenario())


def test_failed_directory_ends_the_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        led = Led(tmp_path)
        answer = asyncio.ensure_future(led.delete(7))
        await settle()
        led.hosting.logs.directories[0].health.fail(OSError("broken"))
        led.hosting.replicas.drop_directory(tmp_path)
        assert await answer == DeletionResult(ErrorCode.KAFKA_STORAGE_ERROR)
        assert await led.delete(7) == DeletionResult(ErrorCode.KAFKA_STORAGE_ERROR)
        led.hosting.close()

    run(scenario())


def test_deletion_in_a_compacted_topic_is_rejected(tmp_path: Path) -> None:
    async def scenario() -> None:
        led = Led(tmp_path / "c", cleanup_policy="compact")
        assert await led.delete(3) == DeletionResult(ErrorCode.POLICY_VIOLATION)
        led.hosting.close()
        led = Led(tmp_path / "cd", cleanup_policy="compact,delete", alive=(1,))
        assert await led.delete(3) == DeletionResult(NONE, 3)
        led.hosting.close()

    run(scenario())


def test_deletion_survives_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        led = Led(tmp_path, alive=(1,))
        assert await led.delete(3) == DeletionResult(NONE, 3)
        led.hosting.logs.shutdown()
        again = Hosting([tmp_path])
        log = again.logs.get("t", 0)
        assert log is not None
        assert log.log_start_offset == 3
        again.close()

    run(scenario())
