"""KRaft's quorum that crashes, pauses or is cut apart: brokers lose time, never records."""

from urteil.suites.generated_tests import test_scenario

__all__ = ["test_scenario"]
