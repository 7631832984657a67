"""Retention deletes expired and surplus segments only; indexes find what remains."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
