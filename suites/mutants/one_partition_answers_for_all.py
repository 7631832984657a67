"""Of a request to several partitions the first that is replicated counts for all."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all of several partitions is answered when one of them is replicated"
MODELS = "a delayed produce that is done with its first partition"
SCENARIO = "shared-requests"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    """What the others of the request wait for is taken for done."""

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
