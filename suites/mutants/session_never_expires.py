"""Reports no session as expired."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group member whose session timeout passed stays in the group"
MODELS = "KAFKA-9752: a lost heartbeat timer lets dead members block rebalances"
SCENARIO = "member-killed"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_expired(member: Any, now_ms: float) -> bool:
            if original(member, now_ms):
                mark.hit()
            return False

        return is_expired

    replace("urteil.broker.groups.member:Member.is_expired", make)
