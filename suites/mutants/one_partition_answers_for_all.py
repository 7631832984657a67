"""Completes a produce request when one of its partitions is replicated."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all of several partitions is answered when one of them is replicated"
MODELS = "a delayed produce request that completes with its first partition"
SCENARIO = "shared-requests"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def look(waiting: Any) -> bool | None:
            before = len(waiting._waiting)
            done: bool | None = original(waiting)
            if done or len(waiting._waiting) == before:
                return done
            mark.hit()
            waiting._waiting.clear()
            return True

        return look

    replace("urteil.broker.replication.replica_manager:_Acknowledgement._look", make)
