"""Delivery: what each combination of client settings promises and permits."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result, Status
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds, guarantee


@pytest.mark.parametrize("result", ["calm", "demo", "group"], indirect=True)
def test_idempotent_acks_all_writes_each_record_once(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "phantom", "inconsistent_offset")


@pytest.mark.parametrize("result", ["at-most-once"], indirect=True)
def test_at_most_once_loses_but_invents_nothing(result: Result) -> None:
    assert_holds(result, "phantom", "replica_divergence")


@pytest.mark.parametrize("result", ["at-least-once"], indirect=True)
def test_at_least_once_repeats_but_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "phantom")
    assert guarantee(result, "duplicate").status is not Status.VIOLATED


@pytest.mark.parametrize("result", ["corrupt-client"], indirect=True)
def test_wrong_crc_is_rejected(result: Result) -> None:
    assert_holds(result, "corrupt", "lost_write")


@pytest.mark.parametrize("repeats", ["acks-one"], indirect=True)
def test_acks_one_loses_a_permitted_tail(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["shared-requests"], indirect=True)
def test_request_over_several_partitions_waits_for_each(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate")


@pytest.mark.parametrize("result", ["large-records"], indirect=True)
def test_record_larger_than_a_fetch_is_delivered(result: Result) -> None:
    assert_holds(result, "no_progress", "no_delivery", "slow_recovery")


@pytest.mark.parametrize("result", ["rewritten"], indirect=True)
def test_recompressed_records_are_unchanged(result: Result) -> None:
    assert_holds(result, "corrupt", "lost_write", "sequence_gap", "time_index_wrong")


@pytest.mark.parametrize("result", ["old-clients"], indirect=True)
def test_down_converted_records_are_unchanged(result: Result) -> None:
    assert_holds(result, "corrupt", "lost_write", "poll_skip", "no_delivery")
