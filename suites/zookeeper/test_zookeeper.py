"""ZooKeeper that crashes, pauses or loses sessions: brokers lose time, never records."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
