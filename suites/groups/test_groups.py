"""What a consumer group may rely on: one owner a partition, and positions that stay."""

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
def test_members_that_come_and_go_share_without_loss(result: Result) -> None:
    assert_holds(result, "two_owners", "commit_beyond_processed", "no_delivery", *POSITIONS)


@pytest.mark.parametrize("result", ["paused-member", "zombie-commits"], indirect=True)
def test_a_zombie_is_refused(result: Result) -> None:
    assert_holds(result, "zombie_commit", "two_owners")


@pytest.mark.parametrize("result", ["static-members"], indirect=True)
def test_a_static_member_that_was_replaced_is_refused(result: Result) -> None:
    assert_holds(result, "zombie_commit", "two_owners", "no_delivery", *POSITIONS)


@pytest.mark.parametrize("result", ["coordinator-crash", "coordinator-moves"], indirect=True)
def test_a_group_survives_its_coordinators(result: Result) -> None:
    assert_holds(result, "generation_went_back", "no_delivery", "two_owners", *POSITIONS)


@pytest.mark.parametrize("result", ["lost-generations"], indirect=True)
def test_a_generation_is_told_when_others_have_it(result: Result) -> None:
    assert_holds(result, "generation_went_back", "zombie_commit")


@pytest.mark.parametrize(
    "result", ["cut-coordinator", "committed-registers", "positions-expire"], indirect=True
)
def test_what_was_committed_survives_its_coordinator(result: Result) -> None:
    assert_holds(result, *POSITIONS)
