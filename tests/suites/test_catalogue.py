"""Suites and their scenarios."""

from __future__ import annotations

from urteil.harness.scenarios import SCENARIOS
from urteil.suites import catalogue


def test_suite_has_the_scenarios_that_its_tests_name() -> None:
    assert "unclean-on" in catalogue.scenarios_of("elections", SCENARIOS)
    assert "unclean-on" not in catalogue.scenarios_of("delivery", SCENARIOS)


def test_no_suite_is_empty() -> None:
    assert {"delivery", "elections", "replication"} <= set(catalogue.suites())
    assert all(catalogue.scenarios_of(suite, SCENARIOS) for suite in catalogue.suites())
