"""Delivery: what each combination of client settings promises and permits."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
