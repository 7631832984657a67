"""Replicas that crash, lag or are cut off: no acknowledged record is lost, replicas agree."""

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
def test_replicas_agree_and_no_record_is_lost(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["lagging-follower"], indirect=True)
def test_lagging_follower_leaves_the_isr(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "no_progress")


@pytest.mark.parametrize("result", ["isolate-leader", "lone-leader"], indirect=True)
def test_leader_without_followers_acknowledges_no_record_that_it_may_lose(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["min-isr"], indirect=True)
def test_acks_all_below_min_isr_is_rejected(result: Result) -> None:
    assert_holds(result, "lost_write", "ack_below_min_isr")


@pytest.mark.parametrize(
    "result", ["epoch-truncation", "untold-successor", "lagging-successor"], indirect=True
)
def test_logs_are_truncated_by_epoch(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")
