"""Retention deletes expired and surplus segments only; indexes find what remains."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
