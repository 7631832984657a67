"""What clients' settings promise, and what they give up."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result, Status
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds, guarantee


@pytest.mark.parametrize("result", ["calm", "demo", "group"], indirect=True)
def test_idempotent_acks_all_is_exactly_once_in_the_log(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "phantom", "inconsistent_offset")


@pytest.mark.parametrize("result", ["at-most-once"], indirect=True)
def test_at_most_once_may_lose_but_not_invent(result: Result) -> None:
    assert_holds(result, "phantom", "replica_divergence")


@pytest.mark.parametrize("result", ["at-least-once"], indirect=True)
def test_at_least_once_may_repeat_but_not_lose(result: Result) -> None:
    assert_holds(result, "lost_write", "phantom")
    assert guarantee(result, "duplicate").status is not Status.VIOLATED


@pytest.mark.parametrize("result", ["corrupt-client"], indirect=True)
def test_a_wrong_crc_is_refused(result: Result) -> None:
    assert_holds(result, "corrupt", "lost_write")


@pytest.mark.parametrize("repeats", ["acks-one"], indirect=True)
def test_acks_one_loses_its_tail_and_it_is_permitted(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["shared-requests"], indirect=True)
def test_each_partition_of_a_request_counts(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate")


@pytest.mark.parametrize("result", ["large-records"], indirect=True)
def test_a_record_larger_than_a_fetch_is_delivered(result: Result) -> None:
    assert_holds(result, "no_progress", "no_delivery", "slow_recovery")


@pytest.mark.parametrize("result", ["rewritten"], indirect=True)
def test_what_a_broker_packs_anew_stays_as_it_was(result: Result) -> None:
    assert_holds(result, "corrupt", "lost_write", "sequence_gap", "time_index_wrong")


@pytest.mark.parametrize("result", ["old-clients"], indirect=True)
def test_what_is_converted_for_old_clients_stays_as_it_was(result: Result) -> None:
    assert_holds(result, "corrupt", "lost_write", "poll_skip", "no_delivery")
