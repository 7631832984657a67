"""Administration under load loses no record."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["topics", "recreate-topic"], indirect=True)
def test_topic_churn_loses_no_record(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["office-lost"], indirect=True)
def test_next_controller_completes_pending_work(result: Result) -> None:
    assert_holds(result, "slow_recovery", "lost_write", "replica_divergence", "duplicate")


@pytest.mark.parametrize("result", ["reassign-cancelled", "preferred"], indirect=True)
def test_acknowledged_administration_takes_effect(result: Result) -> None:
    assert_holds(result, "slow_recovery", "lost_write")


@pytest.mark.parametrize("result", ["reassign", "raise-replication", "preferred"], indirect=True)
def test_moving_replicas_and_leaders_loses_no_record(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader", "epoch_went_back")


@pytest.mark.parametrize("result", ["reassign-sole"], indirect=True)
def test_moving_a_sole_replica_loses_no_record(result: Result) -> None:
    assert_holds(result, "lost_write", "unclean_leader", "duplicate")


@pytest.mark.parametrize("result", ["move-directories"], indirect=True)
def test_moving_a_sole_replica_to_another_disk_loses_no_record(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "sequence_gap", "hole")


@pytest.mark.parametrize("result", ["known-answers"], indirect=True)
def test_known_questions_are_answered_correctly(result: Result) -> None:
    assert_holds(result, "wrong_answer", "lost_write", "replica_divergence")


@pytest.mark.parametrize("result", ["settings"], indirect=True)
def test_reset_settings_apply_again(result: Result) -> None:
    assert_holds(result, "ack_below_min_isr", "lost_write", "replica_divergence")


@pytest.mark.parametrize("result", ["retention-changed"], indirect=True)
def test_changed_settings_have_no_other_effect(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate", "kept_too_long")


@pytest.mark.parametrize("result", ["add-broker", "remove-broker"], indirect=True)
def test_adding_and_removing_brokers_loses_no_record(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "unclean_leader")
