"""Quotas of replication."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.net.raw import run
from tests.broker.replication.hosting import Hosting
from tests.broker.replication.plain import records
from urteil.broker.replication.fetch_target import FetchTarget
from urteil.broker.replication.partition_read import FetchTerms
from urteil.broker.replication.replication_throttle import Rate, Throttle, is_listed
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest


def test_rate_covers_the_last_windows() -> None:
    rate = Rate(3, 1000.0)
    assert rate.per_second(0.0) == 0.0
    rate.record(500, 0.0)
    rate.record(500, 900.0)
    assert rate.per_second(900.0) == 1000.0, "never over less than one window"
    rate.record(1000, 1500.0)
    assert rate.per_second(2000.0) == 1000.0
    assert rate.per_second(3100.0) == 1000 / 1.6
    assert rate.per_second(9000.0) == 0.0


def test_quota_follows_the_current_setting() -> None:
    properties: dict[str, str] = {}
    now_ms = [0.0]
    throttle = Throttle(properties, "leader", lambda: now_ms[0])
    throttle.record(10_000)
    assert not throttle.is_exceeded, "without a limit"
    properties["leader.replication.throttled.rate"] = "5000"
    assert throttle.is_exceeded
    now_ms[0] = 2000.0
    assert not throttle.is_exceeded, "5,000 bytes a second are not more than 5,000"
    properties["leader.replication.throttled.rate"] = "4999"
    assert throttle.is_exceeded


@pytest.mark.parametrize(
    ("replicas", "listed"),
    [("", False), ("*", True), ("0:1", False), ("0:1,3:2", True), ("3:22", False), ("none", False)],
)
def test_throttled_replicas_are_listed_by_partition_and_broker(replicas: str, listed: bool) -> None:
    assert is_listed(replicas, 3, 2) is listed


RATE, REPLICAS = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("listed", "isr", "waits"),
    [("*", (1,), True), ("0:1", (1,), True), ("1:1,0:2", (1,), False), ("*", (1, 2), False)],
)
def test_leader_throttles_listed_followers_outside_the_isr(
    tmp_path: Path, listed: str, isr: tuple[int, ...], waits: bool
) -> None:
    async def scenario() -> None:
        hosting = Hosting([tmp_path], props={RATE: "100"}, overrides=lambda _: {REPLICAS: listed})
        hosting.lead(0, replicas=(1, 2), isr=isr)
        partition = hosting.replicas.partition("t", 0)
        assert partition is not None
        for _ in range(2):
            partition.append(records(10), 1, 0, 0.0)

        async def fetched(offset: int) -> int:
            terms = FetchTerms(replica_id=2, max_wait_ms=0, min_bytes=1, max_bytes=300)
            asked = FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=300)
            (read,) = await hosting.replicas.fetch_reader.fetch(
                terms, [FetchTarget("t", partition, asked, ErrorCode.NONE)]
            )
            assert read.error is ErrorCode.NONE
            return read.size

        assert await fetched(0) > 100, "within the quota when it was asked"
        hosting.clock.ms = 1000.0
        assert (await fetched(10) == 0) is waits
        assert partition.followers[2].end_offset == 10, "and yet it is known where it is"
        hosting.clock.ms = 12_000.0
        assert await fetched(10) > 0
        await hosting.replicas.close()
        hosting.close()

    run(scenario())
