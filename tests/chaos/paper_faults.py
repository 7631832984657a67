"""Arguments and targets of faults on paper clusters."""

from __future__ import annotations

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS


def sample_target(name: str) -> str:
    """The target of the fault in these tests."""
    if FAULTS[name].changes_voters:
        return "quorum_follower"
    links = FAULTS[name].family == "network"
    return FAULTS[name].sample if links else "leader"


def arguments(target: str, **options: str | float | bool) -> FaultArguments:
    return FaultArguments(target=target, topic="t", seed="7", options=options)
