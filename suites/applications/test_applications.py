"""Applications of others: their promises end to end, under crashes of their own and of brokers."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
