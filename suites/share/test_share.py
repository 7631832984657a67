"""Share groups whose members and brokers die: each record is settled once, and none is skipped."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
