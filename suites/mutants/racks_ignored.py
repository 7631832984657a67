"""Readers are never sent to the replica in their rack."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "everybody reads from the leader, whatever replica.selector.class says"
MODELS = "RackAwareReplicaSelector (KIP-392) that selects nobody"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"
LEADER = -1


def apply(mark: Mark) -> None:
    """The leader is as near as anybody."""

    def make(original: Function) -> Function:
        def select(nearest: Any, partition: Any, fetch_offset: int) -> int:
            if original(nearest, partition, fetch_offset) != LEADER:
                mark.hit()
            return LEADER

        return select

    replace("urteil.broker.replication.nearest_replica:NearestReplica.select", make)
