"""Retention deletes expired and surplus segments only; indexes find what remains."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["retention"], indirect=True)
def test_unexpired_records_are_retained(result: Result) -> None:
    assert_holds(result, "retained_too_short", "kept_too_long", "lost_write")


@pytest.mark.parametrize("result", ["deletion"], indirect=True)
def test_deleted_records_are_gone_and_no_others(result: Result) -> None:
    assert_holds(result, "kept_too_long", "retained_too_short", "lost_write", "vanished_read")


@pytest.mark.parametrize("result", ["indexes"], indirect=True)
def test_offset_lookups_are_correct(result: Result) -> None:
    assert_holds(result, "index_wrong", "time_index_wrong", "end_below_ack", "disagreement")
    assert_holds(result, "epoch_lineage")


@pytest.mark.parametrize("result", ["deleted-once"], indirect=True)
def test_deleted_records_stay_deleted(result: Result) -> None:
    assert_holds(result, "kept_too_long", "lost_write", "replica_divergence")


@pytest.mark.parametrize("result", ["left-behind"], indirect=True)
def test_follower_below_the_log_start_starts_again(result: Result) -> None:
    assert_holds(result, "hole", "lost_write", "replica_divergence", "slow_recovery")
