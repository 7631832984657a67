"""Consumer groups: one owner for each partition, and committed offsets that persist."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds

POSITIONS = ("commit_went_back", "commit_register")


@pytest.mark.parametrize(
    "result",
    [
        "group-calm",
        "member-killed",
        "slow-poll",
        "rebalance-storm",
        "members-leave",
        "passers-by",
        "cooperative-storm",
    ],
    indirect=True,
)
def test_rebalances_lose_no_record(result: Result) -> None:
    assert_holds(result, "two_owners", "commit_beyond_processed", "no_delivery", *POSITIONS)


@pytest.mark.parametrize("result", ["paused-member", "zombie-commits"], indirect=True)
def test_commit_of_a_removed_member_is_rejected(result: Result) -> None:
    assert_holds(result, "zombie_commit", "two_owners")


@pytest.mark.parametrize("result", ["static-members"], indirect=True)
def test_replaced_static_member_is_fenced(result: Result) -> None:
    assert_holds(result, "zombie_commit", "two_owners", "no_delivery", *POSITIONS)


@pytest.mark.parametrize("result", ["coordinator-crash", "coordinator-moves"], indirect=True)
def test_group_survives_coordinator_crashes(result: Result) -> None:
    assert_holds(result, "generation_went_back", "no_delivery", "two_owners", *POSITIONS)


@pytest.mark.parametrize("result", ["lost-generations"], indirect=True)
def test_generation_is_replicated_before_members_get_it(result: Result) -> None:
    assert_holds(result, "generation_went_back", "zombie_commit")


@pytest.mark.parametrize(
    "result", ["cut-coordinator", "committed-registers", "positions-expire"], indirect=True
)
def test_committed_offsets_survive_coordinator_crashes(result: Result) -> None:
    assert_holds(result, *POSITIONS)
