"""Who leads no more acknowledges what waited for followers."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "pending acks=all are answered as written when the leader is deposed"
MODELS = "delayed produces completed by a change of role"
SCENARIO = "preferred"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    """No leader, no error."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def acknowledged(partition: Any, required_offset: int) -> Any:
            told = original(partition, required_offset)
            if told is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                mark.hit()
                return ErrorCode.NONE
            return told

        return acknowledged

    replace("urteil.broker.replication.partition:Partition.acknowledged", make)
