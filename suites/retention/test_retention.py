"""Retention deletes what is too old or too much; indexes find what is there."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["retention"], indirect=True)
def test_nothing_young_is_deleted(result: Result) -> None:
    assert_holds(result, "retained_too_short", "kept_too_long", "lost_write")


@pytest.mark.parametrize("result", ["deletion"], indirect=True)
def test_what_is_deleted_is_gone_and_nothing_else(result: Result) -> None:
    assert_holds(result, "kept_too_long", "retained_too_short", "lost_write", "vanished_read")


@pytest.mark.parametrize("result", ["indexes"], indirect=True)
def test_offsets_times_and_ends_are_found(result: Result) -> None:
    assert_holds(result, "index_wrong", "time_index_wrong", "end_below_ack", "disagreement")
    assert_holds(result, "epoch_lineage")


@pytest.mark.parametrize("result", ["deleted-once"], indirect=True)
def test_what_is_deleted_stays_so(result: Result) -> None:
    assert_holds(result, "kept_too_long", "lost_write", "replica_divergence")


@pytest.mark.parametrize("result", ["left-behind"], indirect=True)
def test_who_has_nothing_of_the_log_any_more_starts_anew(result: Result) -> None:
    assert_holds(result, "hole", "lost_write", "replica_divergence", "slow_recovery")
