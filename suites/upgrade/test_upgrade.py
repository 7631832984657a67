"""A rolling upgrade from the release before, under load."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
