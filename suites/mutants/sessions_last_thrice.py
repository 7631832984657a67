"""A member that is silent is waited for three times as long as it asked."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group member is dead after three session timeouts"
MODELS = "the rebalance timeout taken for the session's"
SCENARIO = "member-killed"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    """Deadlines lie further away."""

    def make(original: Function) -> Function:
        def heard(member: Any, now_ms: float) -> None:
            mark.hit()
            member.deadline_ms = now_ms + 3 * member.session_timeout_ms

        return heard

    replace("urteil.broker.groups.member:Member.heard", make)
