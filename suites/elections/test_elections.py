"""Elections: each new leader and controller has everything that was acknowledged."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
