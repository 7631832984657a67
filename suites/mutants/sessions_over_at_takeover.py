"""The members of a group that is read from the log have been away for too long."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a coordinator that takes over puts all members out as soon as it has read of them"
MODELS = "sessions that do not begin anew when a group is loaded"
SCENARIO = "coordinator-crash"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    """Their time is over."""

    def make(original: Function) -> Function:
        def member(**stored: Any) -> Any:
            mark.hit()
            stored["deadline_ms"] -= stored["session_timeout_ms"]
            return original(**stored)

        return member

    replace("urteil.broker.groups.snapshot:Member", make)
