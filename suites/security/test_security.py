"""ACLs and quotas: no client exceeds its rights or its quota."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
