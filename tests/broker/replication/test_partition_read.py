"""Bounds and fencing of reads, and results of ListOffsets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.net.raw import run
from tests.broker.replication.hosting import Hosting
from tests.broker.replication.plain import Plain, state
from urteil.broker.base.offload import Offload
from urteil.broker.log.storage import File
from urteil.broker.replication.offset_lookup import (
    EARLIEST,
    LATEST,
    OffsetAnswer,
    find_epoch_end,
    find_offset,
)
from urteil.broker.replication.partition_read import FetchTerms, PartitionRead, read_partition
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest

CONSUMER = FetchTerms(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
FOLLOWER = FetchTerms(replica_id=2, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    made = Plain(tmp_path / "t-0")
    made.partition.become_leader(state(1, 3), 0.0)
    for _ in range(4):
        made.append(1)
    made.partition.record_follower_fetch(2, 2, 0, 0.0)
    made.partition.record_follower_fetch(3, 2, 0, 0.0)
    return made


def read(plain: Plain, offset: int, terms: FetchTerms = CONSUMER, **more: int) -> PartitionRead:
    requested = FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **more
    )
    return read_partition(plain.partition, requested, terms, 1 << 20, 0.0, min_one=True)


def test_consumer_reads_up_to_the_high_watermark(plain: Plain) -> None:
    all_of_it = read(plain, 0, FOLLOWER)
    committed = read(plain, 0)
    assert committed.high_watermark == 2
    assert committed.size == all_of_it.size // 2
    assert read(plain, 2).size == 0
    assert read(plain, 4).error is ErrorCode.NONE
    assert read(plain, 5).error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_leader_epoch_of_a_fetch_is_checked(plain: Plain) -> None:
    assert read(plain, 0, current_leader_epoch=2).error is ErrorCode.FENCED_LEADER_EPOCH
    assert read(plain, 0, current_leader_epoch=4).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert read(plain, 0, current_leader_epoch=3).error is ErrorCode.NONE


def test_fetch_of_a_broker_without_a_replica_is_rejected(plain: Plain) -> None:
    stranger = FetchTerms(replica_id=9, max_wait_ms=0, min_bytes=1, max_bytes=1)
    assert read(plain, 0, stranger).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    refused = read(plain, 0, stranger, current_leader_epoch=3)
    assert refused.error is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_late_fetch_of_an_earlier_broker_session_is_rejected(plain: Plain) -> None:
    """It had 4 records before its machine lost power, and has 2 of them now."""
    now, before = (replace(FOLLOWER, replica_epoch=epoch) for epoch in (20, 10))
    assert read(plain, 2, now).error is ErrorCode.NONE
    plain.partition.record_follower_fetch(3, 4, 0, 0.0)
    assert read(plain, 4, before).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert plain.log.high_watermark == 2
    assert read(plain, 4, now).error is ErrorCode.NONE
    assert plain.log.high_watermark == 4


def test_diverging_fetch_gets_the_epoch_end_and_is_not_recorded(plain: Plain) -> None:
    result = read(plain, 4, FOLLOWER, last_fetched_epoch=2)
    assert result.error is ErrorCode.NONE
    assert result.diverges
    assert plain.partition.followers[2].end_offset == 2


def test_latest_offset_waits_for_the_new_leaders_high_watermark(plain: Plain) -> None:
    plain.partition.become_follower(state(2, 4))
    plain.partition.become_leader(state(1, 5), 0.0)

    def ask(timestamp: int, isolation: int | None = 0) -> OffsetAnswer:
        finding = find_offset(
            plain.partition,
            timestamp,
            offload=Offload(),
            current_leader_epoch=-1,
            isolation=isolation,
            only_leader=True,
        )
        return asyncio.run(finding)

    assert ask(LATEST).error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(LATEST, None).offset == 4
    assert ask(EARLIEST).offset == 0
    for broker in (2, 3):
        plain.partition.record_follower_fetch(broker, 4, 0, 0.0)
    assert ask(LATEST).offset == 4


def test_epoch_end_is_answered_by_the_leader(plain: Plain) -> None:
    assert find_epoch_end(plain.partition, 3, -1) == (ErrorCode.NONE, 3, 4)
    assert find_epoch_end(plain.partition, 9, -1) == (ErrorCode.NONE, -1, -1)
    assert find_epoch_end(plain.partition, 3, 2)[0] is ErrorCode.FENCED_LEADER_EPOCH


def test_consumer_reads_committed_records_from_a_follower(plain: Plain) -> None:
    nearby = FetchTerms(
        replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, any_replica=True
    )
    plain.partition.become_follower(state(2, 4))
    assert read(plain, 0).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(plain, 0, nearby).high_watermark == 2
    assert read(plain, 3, nearby).size == 0
    assert read(plain, 9, nearby).error is ErrorCode.NOT_LEADER_OR_FOLLOWER, "not out of range"
    plain.partition.retire()
    assert read(plain, 0, nearby).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_waiting_fetch_reads_the_records_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each append it is looked how much there is, not what."""

    async def scenario() -> None:
        hosting = Hosting([tmp_path])
        hosting.lead(0)
        asked = FetchRequest.FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=1 << 20
        )
        terms = replace(CONSUMER, max_wait_ms=60_000, min_bytes=300_000, read_committed=True)
        fetching = asyncio.ensure_future(
            hosting.replicas.fetch_reader.fetch(terms, [hosting.replicas.fetch_target("t", asked)])
        )
        await asyncio.sleep(0)
        read, sizes = File.read_at, []

        def counted(file: File, size: int, position: int) -> bytes:
            sizes.append(size)
            return read(file, size, position)

        monkeypatch.setattr(File, "read_at", counted)
        data = memoryview(build_batch([(None, b"x" * 100_000, (), 0)]))
        for _ in range(3):
            await hosting.replicas.append(1000, 1, {("t", 0): data})
        (answer,) = await fetching
        assert answer.size > 300_000
        assert [size for size in sizes if size > 1000] == [answer.size]
        hosting.close()

    run(scenario())
