"""Replicas that crash, lag or are cut off: no acknowledged record is lost, replicas agree."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
