"""Answers ControlledShutdown without moving a leader."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a controlled shutdown moves no leader"
MODELS = "a controlled shutdown that is answered before its work is done"
SCENARIO = "rolling-restart"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def controlled_shutdown(term: Any, request: Any) -> Any:
            from urteil.broker.wire.messages import ControlledShutdownResponse

            mark.hit()
            return ControlledShutdownResponse(remaining_partitions=[])

        return controlled_shutdown

    replace("urteil.broker.controller.term:Term.controlled_shutdown", make)
