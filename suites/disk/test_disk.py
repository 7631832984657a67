"""Disks that lose, refuse or damage what they were given: other replicas stand in for them."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds


@pytest.mark.parametrize("result", ["power-cut"], indirect=True)
def test_a_power_cut_on_one_broker_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "epoch_lineage")


@pytest.mark.parametrize("repeats", ["power-cut-all"], indirect=True)
def test_a_power_cut_on_all_loses_what_nobody_had_flushed(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["disk-full", "disk-readonly"], indirect=True)
def test_a_broker_whose_disk_fails_gives_way(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["disk-gone"], indirect=True)
def test_others_lead_what_a_broker_has_lost(result: Result) -> None:
    assert_holds(result, "no_progress", "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["disk-slow"], indirect=True)
def test_a_slow_disk_costs_time_alone(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["disk-emptied"], indirect=True)
def test_an_emptied_disk_is_filled_again(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")


@pytest.mark.parametrize("repeats", ["disk-emptied-last"], indirect=True)
def test_the_last_replica_in_sync_takes_everything_with_it(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["segment-damaged"], indirect=True)
def test_a_rotten_segment_is_found_and_fetched_again(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "corrupt")
