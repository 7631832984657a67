"""Idempotent producers: whatever is sent again lies in the log once, and in its order."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["repeated-batches"], indirect=True)
def test_five_batches_sent_again_lie_in_the_log_once(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "sequence_gap", "reordered_send")


@pytest.mark.parametrize("result", ["returned-leader", "unanswered-restart"], indirect=True)
def test_producers_are_known_by_what_the_log_has_of_them(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "sequence_gap")


@pytest.mark.parametrize("result", ["slow-crash", "restart-storm"], indirect=True)
def test_what_nobody_acknowledged_is_known_by_the_next_leader(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate")
