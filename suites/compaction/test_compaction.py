"""Compacted topics keep the last value of each key at its offset, and tombstones long enough."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
