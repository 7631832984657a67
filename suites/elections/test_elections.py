"""Leaders and controllers that vanish: whoever takes over has what was acknowledged."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result, Status
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds, guarantee


@pytest.mark.parametrize("result", ["leader-crash", "isolate-broker"], indirect=True)
def test_another_leads_and_work_goes_on(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "epoch_went_back", "no_progress")


@pytest.mark.parametrize(
    "result", ["controller-crash", "pause-leader", "isolate-zookeeper"], indirect=True
)
def test_a_deposed_leader_or_controller_does_no_harm(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "epoch_went_back", "duplicate")


@pytest.mark.parametrize("result", ["late-metadata", "late-stop"], indirect=True)
def test_a_broker_obeys_what_is_meant_for_this_life_of_it(result: Result) -> None:
    assert_holds(result, "lost_write", "disagreement", "slow_recovery")


@pytest.mark.parametrize("result", ["fast-failover"], indirect=True)
def test_leaders_in_a_row_leave_one_log(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")


@pytest.mark.parametrize("result", ["nearest-replica"], indirect=True)
def test_followers_serve_what_is_committed(result: Result) -> None:
    assert_holds(result, "lost_write", "inconsistent_offset", "vanished_read")


@pytest.mark.parametrize("result", ["leader-moves"], indirect=True)
def test_a_leadership_given_back_leaves_one_log(result: Result) -> None:
    """With acks=1 what the next leader had not fetched yet may be lost."""
    assert_holds(result, "replica_divergence", "unclean_leader")
    assert guarantee(result, "lost_write").status in (Status.HOLDS, Status.PERMITTED)


@pytest.mark.parametrize("result", ["unclean-off", "lone-shutdown", "slow-return"], indirect=True)
def test_a_partition_waits_for_its_last_in_sync_replica(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader")


@pytest.mark.parametrize(
    "repeats", ["unclean-on", "unclean-asked", "unclean-allowed"], indirect=True
)
def test_unclean_election_loses_a_suffix_and_it_is_permitted(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["early-return"], indirect=True)
def test_a_preferred_leader_leads_once_it_is_in_sync(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "slow_recovery")
