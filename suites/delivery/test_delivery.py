"""Delivery: what each combination of client settings promises and permits."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
