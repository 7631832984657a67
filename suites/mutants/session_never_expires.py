"""A coordinator never gives up a member that it does not hear of any more."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group's member whose session ran out stays, and its group waits for it"
MODELS = "a lost heartbeat timer: dead members block rebalances, KAFKA-9752"
SCENARIO = "member-killed"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    """Nobody's session ever runs out."""

    def make(original: Function) -> Function:
        def is_expired(member: Any, now_ms: float) -> bool:
            if original(member, now_ms):
                mark.hit()
            return False

        return is_expired

    replace("urteil.broker.groups.member:Member.is_expired", make)
