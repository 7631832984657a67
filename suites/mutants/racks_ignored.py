"""Selects the leader as the replica for every consumer."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "consumers fetch from the leader, whatever replica.selector.class says"
MODELS = "KIP-392: a RackAwareReplicaSelector that selects no replica"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"
LEADER = -1


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def select(nearest: Any, partition: Any, fetch_offset: int) -> int:
            if original(nearest, partition, fetch_offset) != LEADER:
                mark.hit()
            return LEADER

        return select

    replace("urteil.broker.replication.nearest_replica:NearestReplica.select", make)
