"""What administrators do at work costs nobody a record."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["topics", "recreate-topic"], indirect=True)
def test_topics_come_and_go_beside_the_load(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["office-lost"], indirect=True)
def test_the_next_controller_goes_on(result: Result) -> None:
    assert_holds(result, "slow_recovery", "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["reassign-cancelled", "preferred"], indirect=True)
def test_what_is_told_to_be_done_is_done(result: Result) -> None:
    assert_holds(result, "slow_recovery", "lost_write")


@pytest.mark.parametrize("result", ["reassign", "raise-replication", "preferred"], indirect=True)
def test_replicas_and_leaders_move_without_loss(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader", "epoch_went_back")


@pytest.mark.parametrize("result", ["reassign-sole"], indirect=True)
def test_a_sole_replica_moves_without_loss(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "duplicate")


@pytest.mark.parametrize("result", ["move-directories"], indirect=True)
def test_a_sole_replica_moves_to_another_disk_without_loss(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "sequence_gap", "hole")


@pytest.mark.parametrize("result", ["known-answers"], indirect=True)
def test_everybody_answers_as_is_right(result: Result) -> None:
    assert_holds(result, "wrong_answer", "lost_write", "replica_divergence")


@pytest.mark.parametrize("result", ["settings"], indirect=True)
def test_what_was_set_back_holds_again(result: Result) -> None:
    assert_holds(result, "ack_below_min_isr", "lost_write", "replica_divergence")


@pytest.mark.parametrize("result", ["retention-changed"], indirect=True)
def test_settings_change_what_was_asked_for_and_no_more(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate", "kept_too_long")


@pytest.mark.parametrize("result", ["add-broker", "remove-broker"], indirect=True)
def test_brokers_come_and_go_with_what_they_hold(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")
