"""Compacted topics keep the last value of every key, at its offset, and tombstones long enough."""

from __future__ import annotations

import pytest

from urteil.harness.scenarios.compaction import OWN
from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["compaction", "compaction-calm"], indirect=True)
def test_cleaning_takes_what_was_overwritten_and_nothing_else(result: Result) -> None:
    assert_holds(result, *OWN, "tombstone_too_early", "compacted_too_early")


@pytest.mark.parametrize("result", ["tombstones"], indirect=True)
def test_tombstones_go_and_nothing_else(result: Result) -> None:
    assert_holds(result, "latest_value_lost", "stale_value_visible", "retained_too_short")
