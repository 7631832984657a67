"""Transactions are atomic, despite crashes and pauses."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
