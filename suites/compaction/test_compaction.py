"""Compacted topics keep the last value of each key at its offset, and tombstones long enough."""

from __future__ import annotations

import pytest

from urteil.harness.scenarios.compaction import OWN
from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["compaction", "compaction-calm"], indirect=True)
def test_cleaning_removes_superseded_records_only(result: Result) -> None:
    assert_holds(result, *OWN, "tombstone_too_early", "compacted_too_early")


@pytest.mark.parametrize("result", ["tombstones"], indirect=True)
def test_cleaning_removes_expired_tombstones_only(result: Result) -> None:
    assert_holds(result, "latest_value_lost", "stale_value_visible", "retained_too_short")
