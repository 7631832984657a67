"""Drawn faults: no acknowledged record is lost, and replicas agree."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
