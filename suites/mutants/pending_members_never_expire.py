"""Sets no timer for pending members."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a member id that was assigned and never used blocks its group for ever"
MODELS = "KIP-394: pending members without a timer"
SCENARIO = "passers-by"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def tick(group: Any, now_ms: float) -> Any:
            if any(now_ms >= until for until in group._pending.values()):
                mark.hit()
            group._pending = dict.fromkeys(group._pending, float("inf"))
            return original(group, now_ms)

        return tick

    replace("urteil.broker.groups.group:Group.tick", make)
