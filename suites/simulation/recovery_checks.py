"""The recovery after the last fault: its deadline, and dead replicas in the ISR."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.derived.former_leaders import departed_leader_rows
from urteil.suites.simulation.evidence import Evidence
from urteil.suites.simulation.rows import state_rows

RECOVERY_DEADLINE_S = 30.0
"""The lab's default (`Scenario.recovery_deadline_s`), whose module needs more than this environment
has."""


def slow_recovery(evidence: Evidence) -> Iterator[str]:
    """Every partition has a leader and its complete ISR before the deadline of the lab."""
    if evidence.healthy_s is None:
        yield f"the cluster was never healthy after {evidence.healed_s:.3f} s"
    elif evidence.healthy_s - evidence.healed_s > RECOVERY_DEADLINE_S:
        took_s = evidence.healthy_s - evidence.healed_s
        yield f"the cluster was healthy {took_s:.1f} s after the last fault"


def dead_replica_in_isr(evidence: Evidence) -> Iterator[str]:
    """A former leader whose registration is gone is not in the next ISR."""
    states = [row | {"topic_id": row["topic"]} for row in state_rows(evidence)]
    ends_ns = round(evidence.promises.ends_s * 1e9)
    for row in departed_leader_rows(states, {}, ends_ns):
        if row["late"]:
            yield f"{row['task']}; {row['shortfall']}"
