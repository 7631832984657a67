"""Evidence of a recovery that took too long, and of a former leader that stayed in the ISR."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from urteil.suites.simulation.evidence import Evidence, Promises
from urteil.suites.simulation.recovery_checks import RECOVERY_DEADLINE_S
from urteil.suites.simulation.zookeeper import Change

BROKER = "/brokers/ids/1"
STATE = "/brokers/topics/t/partitions/0/state"


def put(evidence: Evidence, at_s: float, path: str, content: dict[str, Any] | None) -> None:
    """A version of a node; None deletes it."""
    data = None if content is None else json.dumps(content).encode()
    evidence.changes.append(Change(at_s, round(at_s * 1000), path, data, 0))


def elect(evidence: Evidence, isr: list[int]) -> None:
    """Broker 1 leaves, and broker 2 is elected with this ISR."""
    evidence.promises = Promises(calm_s=30.0, ends_s=60.0)
    put(evidence, 10.0, BROKER, {})
    put(evidence, 20.0, BROKER, None)
    state = {"leader": 2, "isr": isr, "leader_epoch": 1, "controller_epoch": 1}
    put(evidence, 21.0, STATE, state)


def elect_well(evidence: Evidence) -> None:
    elect(evidence, [2, 3])


def elect_beside_the_dead(evidence: Evidence) -> None:
    elect(evidence, [1, 2])


def recover_late(evidence: Evidence) -> None:
    evidence.healthy_s = evidence.healed_s + RECOVERY_DEADLINE_S + 1.0


def never_recover(evidence: Evidence) -> None:
    evidence.healthy_s = None


DAMAGE: dict[Callable[[Evidence], None], str] = {
    elect_beside_the_dead: "dead_replica_in_isr",
    recover_late: "slow_recovery",
    never_recover: "slow_recovery",
}
