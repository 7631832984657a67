"""Consume, transform, produce: each record takes effect once, despite crashes and pauses."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["exactly-once", "paused-copier"], indirect=True)
def test_each_record_is_processed_once(result: Result) -> None:
    assert_holds(result, "offsets_not_atomic", "processed_twice", "unprocessed", "torn_txn")
