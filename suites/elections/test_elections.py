"""Elections: each new leader and controller has everything that was acknowledged."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
