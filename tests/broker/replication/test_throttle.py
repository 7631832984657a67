"""Quotas of replication."""

from __future__ import annotations

import pytest

from urteil.broker.replication.throttle import Rate, Throttle, is_listed


def test_a_rate_is_of_the_last_windows() -> None:
    rate = Rate(3, 1000.0)
    assert rate.per_second(0.0) == 0.0
    rate.record(500, 0.0)
    rate.record(500, 900.0)
    assert rate.per_second(900.0) == 1000.0, "never over less than one window"
    rate.record(1000, 1500.0)
    assert rate.per_second(2000.0) == 1000.0
    assert rate.per_second(3100.0) == 1000 / 1.6
    assert rate.per_second(9000.0) == 0.0


def test_the_quota_is_what_is_set_now() -> None:
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
def test_replicas_are_listed_by_partition_and_broker(replicas: str, listed: bool) -> None:
    assert is_listed(replicas, 3, 2) is listed
