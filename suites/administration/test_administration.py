"""Administration under load loses no record."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
