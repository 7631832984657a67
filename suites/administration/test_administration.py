"""Administration under load loses no record."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
