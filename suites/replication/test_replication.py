"""Replicas that die, lag or are cut off: nothing that was acknowledged is lost, all agree."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize(
    "result",
    [
        "follower-crash",
        "rolling-restart",
        "restart-storm",
        "cut-crash",
        "last-follower",
        "cut-successor",
        "slow-crash",
        "slow-links",
    ],
    indirect=True,
)
def test_replicas_agree_and_nothing_is_lost(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["lagging-follower"], indirect=True)
def test_a_follower_that_lags_is_not_waited_for(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "no_progress")


@pytest.mark.parametrize("result", ["isolate-leader", "lone-leader"], indirect=True)
def test_a_leader_without_followers_acknowledges_nothing_it_could_lose(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["min-isr"], indirect=True)
def test_too_few_in_sync_replicas_are_no_quorum(result: Result) -> None:
    assert_holds(result, "lost_write", "ack_below_min_isr")


@pytest.mark.parametrize(
    "result", ["epoch-truncation", "untold-successor", "lagging-successor"], indirect=True
)
def test_logs_are_cut_by_epoch_not_by_high_watermark(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")
