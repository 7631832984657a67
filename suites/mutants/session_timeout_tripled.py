"""Sets each deadline three session timeouts ahead."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group member is removed only after three session timeouts"
MODELS = "the rebalance timeout used in place of the session timeout"
SCENARIO = "member-killed"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def heard(member: Any, now_ms: float) -> None:
            mark.hit()
            member.deadline_ms = now_ms + 3 * member.session_timeout_ms

        return heard

    replace("urteil.broker.groups.member:Member.heard", make)
