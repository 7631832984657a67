"""Partitions of any shape and bad links: no loss, no duplicates, replicas agree."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
