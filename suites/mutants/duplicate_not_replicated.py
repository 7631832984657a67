"""Requires no replica for a duplicate."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all of a duplicate batch is acknowledged at once, before the batch is replicated"
MODELS = "acks=all of a duplicate treated as acks=1"
SCENARIO = "cut-successor"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def look(waiting: Any) -> Any:
            for key in [one for one in waiting._waiting if waiting._results[one].duplicate]:
                mark.hit()
                del waiting._waiting[key]
            return original(waiting)

        return look

    replace("urteil.broker.replication.replica_manager:_Acknowledgement._look", make)
