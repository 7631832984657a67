"""Disks that lose, reject or damage data: the other replicas replace them."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
