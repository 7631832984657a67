"""Elections: each new leader and controller has everything that was acknowledged."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result, Status
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds, guarantee


@pytest.mark.parametrize("result", ["leader-crash", "isolate-broker"], indirect=True)
def test_next_leader_continues_without_loss(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "epoch_went_back", "no_progress")


@pytest.mark.parametrize(
    "result", ["controller-crash", "pause-leader", "isolate-zookeeper"], indirect=True
)
def test_deposed_leader_or_controller_is_fenced(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "epoch_went_back", "duplicate")


@pytest.mark.parametrize("result", ["late-metadata", "late-stop"], indirect=True)
def test_control_request_for_a_previous_life_is_ignored(result: Result) -> None:
    assert_holds(result, "lost_write", "disagreement", "slow_recovery")


@pytest.mark.parametrize("result", ["fast-failover"], indirect=True)
def test_successive_leaders_leave_one_log(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")


@pytest.mark.parametrize("result", ["nearest-replica"], indirect=True)
def test_followers_serve_committed_records_only(result: Result) -> None:
    assert_holds(result, "lost_write", "inconsistent_offset", "vanished_read")


@pytest.mark.parametrize("result", ["leader-moves"], indirect=True)
def test_preferred_election_leaves_one_log(result: Result) -> None:
    """With acks=1, records that the next leader has not fetched may be lost."""
    assert_holds(result, "replica_divergence", "unclean_leader")
    assert guarantee(result, "lost_write").status in (Status.HOLDS, Status.PERMITTED)


@pytest.mark.parametrize("result", ["unclean-off", "lone-shutdown", "slow-return"], indirect=True)
def test_partition_waits_for_its_last_in_sync_replica(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader")


@pytest.mark.parametrize(
    "repeats", ["unclean-on", "unclean-asked", "unclean-allowed"], indirect=True
)
def test_unclean_election_loses_a_permitted_suffix(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "lost_write")


@pytest.mark.parametrize("result", ["early-return"], indirect=True)
def test_preferred_leader_leads_once_it_is_in_sync(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "slow_recovery")
