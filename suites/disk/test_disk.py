"""Disks that lose, reject or damage data: the other replicas replace them."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
