"""Disks that lose, reject or damage data: the other replicas replace them."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds


@pytest.mark.parametrize("result", ["power-cut"], indirect=True)
def test_power_cut_on_one_broker_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "epoch_lineage")


@pytest.mark.parametrize("repeats", ["power-cut-all"], indirect=True)
def test_power_cut_on_all_brokers_loses_unflushed_records(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["disk-full", "disk-readonly"], indirect=True)
def test_broker_with_failed_disk_is_replaced(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["disk-gone"], indirect=True)
def test_partitions_of_a_lost_directory_get_other_leaders(result: Result) -> None:
    assert_holds(result, "no_progress", "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["disk-slow"], indirect=True)
def test_slow_disk_loses_no_record(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["disk-emptied"], indirect=True)
def test_emptied_disk_is_replicated_again(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")


@pytest.mark.parametrize("repeats", ["disk-emptied-last"], indirect=True)
def test_emptied_last_in_sync_replica_loses_records(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["segment-damaged"], indirect=True)
def test_damaged_segment_is_detected_and_replicated_again(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "corrupt")
