"""A replica that was moved away leaves its log behind."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker that is no replica any more keeps the log"
MODELS = "StopReplica whose delete flag is lost"
SCENARIO = "reassign"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """Nothing is deleted."""

    def make(original: Function) -> Function:
        def drop(replicas: Any, topic: str, partition: int, *, delete: bool) -> None:
            if delete:
                mark.hit()
            original(replicas, topic, partition, delete=False)

        return drop

    replace("urteil.broker.replication.replica_manager:ReplicaManager.drop", make)
