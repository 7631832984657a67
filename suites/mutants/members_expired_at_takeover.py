"""Sets the deadlines of loaded members to the past."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator removes all members of a group as soon as it has loaded it"
MODELS = "session timers that do not restart when a group is loaded"
SCENARIO = "coordinator-crash"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def member(**stored: Any) -> Any:
            mark.hit()
            stored["deadline_ms"] -= stored["session_timeout_ms"]
            return original(**stored)

        return member

    replace("urteil.broker.groups.snapshot:Member", make)
