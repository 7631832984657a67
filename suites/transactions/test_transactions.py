"""Transactions are atomic, despite crashes and pauses."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds

WHOLE = ("torn_txn", "aborted_read", "precommitted_read", "hanging_txn")


@pytest.mark.parametrize(
    "result", ["transactions", "transactions-restart", "transactions-calm"], indirect=True
)
def test_transaction_is_visible_completely_or_not_at_all(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize(
    "result", ["transactions-cleaned", "transactions-held-open"], indirect=True
)
def test_aborted_record_supersedes_no_value(result: Result) -> None:
    assert_holds(result, "aborted_read", "precommitted_read", "latest_value_lost")


@pytest.mark.parametrize("result", ["transactional-killed"], indirect=True)
def test_transaction_of_a_dead_client_is_aborted(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize(
    "result", ["transactional-paused", "shared-transactional-id"], indirect=True
)
def test_older_producer_of_a_transactional_id_is_fenced(result: Result) -> None:
    assert_holds(result, "zombie_write", *WHOLE)


@pytest.mark.parametrize(
    "result", ["unsent-markers", "lost-decision", "lost-additions"], indirect=True
)
def test_decision_survives_coordinator_crash(result: Result) -> None:
    assert_holds(result, "torn_txn", "hanging_txn")


@pytest.mark.parametrize("result", ["lost-markers"], indirect=True)
def test_marker_survives_leader_crash(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize("result", ["transactions-moved"], indirect=True)
def test_transaction_survives_coordinator_change(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize("result", ["late-produce"], indirect=True)
def test_late_record_opens_no_transaction(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize("repeats", ["delayed-end-txn"], indirect=True)
def test_delayed_end_of_the_next_transaction_is_permitted(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "torn_txn")
