"""Ignores the delete flag of StopReplica."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker keeps the log of a replica that was moved away"
MODELS = "a StopReplica request whose delete flag is lost"
SCENARIO = "reassign"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def drop(replicas: Any, topic: str, partition: int, *, delete: bool) -> None:
            if delete:
                mark.hit()
            original(replicas, topic, partition, delete=False)

        return drop

    replace("urteil.broker.replication.replica_manager:ReplicaManager.drop", make)
