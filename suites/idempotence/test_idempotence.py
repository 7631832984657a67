"""Idempotent producers: a batch that is sent again lies in the log once, in order."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
