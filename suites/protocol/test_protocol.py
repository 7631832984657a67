"""Single requests and answers that are lost, late, repeated or changed."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
