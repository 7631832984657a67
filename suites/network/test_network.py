"""Partitions of any shape and bad links: no loss, no duplicates, replicas agree."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
