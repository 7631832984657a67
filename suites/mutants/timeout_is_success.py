"""Removes the error of a produce request that timed out."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all is acknowledged when its timeout passes before the records are replicated"
MODELS = "an expired delayed operation whose error is overwritten"
SCENARIO = "isolate-leader"
GUARANTEE = "end_below_ack"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def time_out(waiting: Any) -> bool:
            if waiting._waiting:
                mark.hit()
            waiting._waiting.clear()
            return bool(original(waiting))

        return time_out

    replace("urteil.broker.replication.replica_manager:_Acknowledgement._time_out", make)
