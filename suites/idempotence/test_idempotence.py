"""Idempotent producers: a batch that is sent again lies in the log once, in order."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["repeated-batches"], indirect=True)
def test_five_repeated_batches_lie_in_the_log_once(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "sequence_gap", "reordered_send")


@pytest.mark.parametrize("result", ["returned-leader", "unanswered-restart"], indirect=True)
def test_producer_state_is_rebuilt_from_the_log(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate", "sequence_gap")


@pytest.mark.parametrize("result", ["slow-crash", "restart-storm"], indirect=True)
def test_next_leader_recognises_unacknowledged_batches(result: Result) -> None:
    assert_holds(result, "lost_write", "duplicate")
