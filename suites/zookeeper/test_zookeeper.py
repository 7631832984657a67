"""ZooKeeper that crashes, pauses or loses sessions: brokers lose time, never records."""

from urteil.suites.scenario_test import test_scenario

__all__ = ["test_scenario"]
