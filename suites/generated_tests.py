"""The test that every suite runs for each of its scenarios (`Scenario.suites`)."""

from __future__ import annotations

from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.result import Result
from urteil.suites.verdicts import assert_expected


def test_scenario(results: list[Result]) -> None:
    assert_expected(SCENARIOS[results[0].scenario], results)
