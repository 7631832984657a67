"""What is sent again is acknowledged because it is in the leader's log."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch that its producer sent again is answered at once, whoever has it"
MODELS = "acks=all of a duplicate answered like acks=1"
SCENARIO = "cut-successor"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    """A duplicate waits for no replica."""

    def make(original: Function) -> Function:
        def look(waiting: Any) -> Any:
            for key in [one for one in waiting._waiting if waiting._results[one].duplicate]:
                mark.hit()
                del waiting._waiting[key]
            return original(waiting)

        return look

    replace("urteil.broker.replication.replica_manager:_Acknowledgement._look", make)
