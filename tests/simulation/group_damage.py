"""Evidence of a group that nothing disturbs, and what it does to its members."""

from __future__ import annotations

import json
from collections.abc import Callable

from urteil.suites.simulation.evidence import OFFSETS_STATE, Evidence
from urteil.suites.simulation.history import Assignment, Beat, Departure, StaticReturn
from urteil.suites.simulation.zookeeper import Change

PARTITION = 0


def lead(evidence: Evidence, at_s: float, broker: int) -> None:
    state = {"leader": broker, "isr": [1, 2], "leader_epoch": 0, "controller_epoch": 1}
    data = json.dumps(state).encode()
    evidence.changes.append(Change(at_s, round(at_s * 1000), OFFSETS_STATE, data, 0))


def beat(evidence: Evidence, at_s: float, node: int = 1, error: str = "NONE") -> None:
    evidence.history.beats.append(Beat("a", "a-1", 1, node, at_s, at_s + 0.1, error))


def have_members(evidence: Evidence) -> None:
    """Member a sends heartbeats, b leaves to a, and s dies and returns."""
    lead(evidence, 0.0, 1)
    beat(evidence, 10.0)
    beat(evidence, 11.0)
    history = evidence.history
    history.assignments.append(Assignment("a", 2, "a-1", "assigned", "t", PARTITION, 21.0))
    history.departures.append(Departure("b", False, (PARTITION,), 20.0, 23.0))
    history.returns.append(StaticReturn("s", 30.0, 31.0, 2, 2))


def expel(evidence: Evidence) -> None:
    have_members(evidence)
    beat(evidence, 12.0, error="UNKNOWN_MEMBER_ID")


def expel_at_takeover(evidence: Evidence) -> None:
    have_members(evidence)
    lead(evidence, 15.0, 2)
    beat(evidence, 18.0, node=2, error="UNKNOWN_MEMBER_ID")


def keep_who_left(evidence: Evidence) -> None:
    have_members(evidence)
    evidence.history.departures.append(Departure("b", True, (1,), 20.0, 28.0))


def rebalance_at_a_return(evidence: Evidence) -> None:
    have_members(evidence)
    evidence.history.returns.append(StaticReturn("s", 40.0, 41.0, 2, 3))


def forget_an_assignment(evidence: Evidence) -> None:
    have_members(evidence)
    evidence.history.assignments.append(
        Assignment("a", 2, "a-1", "forgotten", "t", PARTITION, 22.0)
    )


DAMAGE: dict[Callable[[Evidence], None], str] = {
    expel: "member_expelled",
    expel_at_takeover: "member_expelled",
    keep_who_left: "departed_member_kept",
    rebalance_at_a_return: "static_member_rebalanced",
    forget_an_assignment: "generation_went_back",
}
