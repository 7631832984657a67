"""Completes waiting produce requests without error when the leader is deposed."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a deposed leader acknowledges the acks=all requests that were waiting for followers"
MODELS = "delayed produce requests that a role change completes"
SCENARIO = "preferred"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def acknowledged(partition: Any, required_offset: int) -> Any:
            result = original(partition, required_offset)
            if result is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                mark.hit()
                return ErrorCode.NONE
            return result

        return acknowledged

    replace("urteil.broker.replication.partition:Partition.acknowledged", make)
