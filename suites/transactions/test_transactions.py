"""What a transaction may rely on: all of it or nothing, whoever dies or sleeps."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_found_and_permitted, assert_holds

WHOLE = ("torn_txn", "aborted_read", "precommitted_read", "hanging_txn")


@pytest.mark.parametrize(
    "result", ["transactions", "transactions-restart", "transactions-calm"], indirect=True
)
def test_a_transaction_is_visible_as_a_whole_or_not_at_all(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize(
    "result", ["transactions-cleaned", "transactions-held-open"], indirect=True
)
def test_what_was_aborted_is_no_value_of_its_key(result: Result) -> None:
    assert_holds(result, "aborted_read", "precommitted_read", "latest_value_lost")


@pytest.mark.parametrize("result", ["transactional-killed"], indirect=True)
def test_what_a_client_left_open_is_aborted(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize(
    "result", ["transactional-paused", "shared-transactional-id"], indirect=True
)
def test_of_two_with_one_id_the_older_is_shut_out(result: Result) -> None:
    assert_holds(result, "zombie_write", *WHOLE)


@pytest.mark.parametrize(
    "result", ["unsent-markers", "lost-decision", "lost-additions"], indirect=True
)
def test_a_decision_survives_its_coordinator(result: Result) -> None:
    assert_holds(result, "torn_txn", "hanging_txn")


@pytest.mark.parametrize("result", ["lost-markers"], indirect=True)
def test_an_end_survives_the_leader_that_wrote_it(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize("result", ["transactions-moved"], indirect=True)
def test_a_transaction_survives_the_change_of_its_coordinator(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize("result", ["late-produce"], indirect=True)
def test_a_late_record_opens_no_transaction(result: Result) -> None:
    assert_holds(result, *WHOLE)


@pytest.mark.parametrize("repeats", ["delayed-end-txn"], indirect=True)
def test_a_delayed_end_ends_the_next_transaction_and_it_is_permitted(repeats: list[Result]) -> None:
    assert_found_and_permitted(repeats, "torn_txn")
