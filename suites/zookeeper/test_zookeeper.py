"""ZooKeeper that crashes, pauses or loses sessions: brokers lose time, never records."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize(
    "result", ["zookeeper-leader", "zookeeper-quorum", "zookeeper-pause"], indirect=True
)
def test_unavailable_zookeeper_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "epoch_went_back")


@pytest.mark.parametrize(
    "result",
    ["session-expired", "sessions-expired", "controller-deleted", "zookeeper-answer-lost"],
    indirect=True,
)
def test_broker_returns_after_losing_its_session_or_controllership(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader", "epoch_went_back")


@pytest.mark.parametrize("result", ["clock-jumps", "clock-drift"], indirect=True)
def test_wrong_clocks_change_timestamps_only(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")
