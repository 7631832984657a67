"""ACLs and quotas: no client exceeds its rights or its quota."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
