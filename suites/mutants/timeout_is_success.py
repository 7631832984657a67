"""A produce request that ran out of time is answered as if all had it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all that was not reached in time is acknowledged all the same"
MODELS = "an expired delayed operation whose error is overwritten by the default"
SCENARIO = "isolate-leader"
GUARANTEE = "end_below_ack"


def apply(mark: Mark) -> None:
    """Whoever still waits at the timeout is told no error."""

    def make(original: Function) -> Function:
        def time_out(waiting: Any) -> bool:
            if waiting._waiting:
                mark.hit()
            waiting._waiting.clear()
            return bool(original(waiting))

        return time_out

    replace("urteil.broker.replication.replica_manager:_Acknowledgement._time_out", make)
