"""A rolling upgrade from the release before, under load."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
