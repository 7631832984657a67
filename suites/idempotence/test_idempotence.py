"""Idempotent producers: a batch that is sent again lies in the log once, in order."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
