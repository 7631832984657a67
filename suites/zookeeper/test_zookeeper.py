"""ZooKeeper that dies, falls silent, or forgets: brokers lose time, never records."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize(
    "result", ["zookeeper-leader", "zookeeper-quorum", "zookeeper-pause"], indirect=True
)
def test_a_zookeeper_that_is_away_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "epoch_went_back")


@pytest.mark.parametrize(
    "result",
    ["session-expired", "sessions-expired", "controller-deleted", "zookeeper-answer-lost"],
    indirect=True,
)
def test_who_loses_its_session_or_its_office_comes_back(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader", "epoch_went_back")


@pytest.mark.parametrize("result", ["clock-jumps", "clock-drift"], indirect=True)
def test_wrong_clocks_change_stamps_and_nothing_else(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")
