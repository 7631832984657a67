"""Consumer groups: one owner for each partition, and committed offsets that persist."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
