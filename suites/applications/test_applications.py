"""Third-party applications: their promises end to end, under their own crashes and those of
brokers."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
