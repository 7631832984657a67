"""Consumer groups: one owner for each partition, and committed offsets that persist."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
