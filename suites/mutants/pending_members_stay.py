"""Who was given an id and never came is waited for."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a member that was told its id and did not join blocks its group for ever"
MODELS = "KIP-394: pending members without a timer"
SCENARIO = "passers-by"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    """Pending members do not time out."""

    def make(original: Function) -> Function:
        def tick(group: Any, now_ms: float) -> Any:
            if any(now_ms >= until for until in group._pending.values()):
                mark.hit()
            group._pending = dict.fromkeys(group._pending, float("inf"))
            return original(group, now_ms)

        return tick

    replace("urteil.broker.groups.group:Group.tick", make)
