"""Compacted topics keep the last value of each key at its offset, and tombstones long enough."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
