"""A rolling upgrade from the release before, under load."""

from __future__ import annotations

import pytest

from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_holds


@pytest.mark.parametrize("result", ["upgrade"], indirect=True)
def test_rolling_upgrade_loses_nothing(result: Result) -> None:
    assert_holds(result, "lost_write", "replica_divergence", "duplicate", "epoch_went_back")
