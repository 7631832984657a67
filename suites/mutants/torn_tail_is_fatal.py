"""A broker does not start from what a power cut left."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log whose last batch is torn ends the broker that recovers it"
MODELS = "recoveries that raise on what a power cut leaves"
SCENARIO = "power-cut"
GUARANTEE = "unexpected_exit"


def apply(mark: Mark) -> None:
    """No end is cut."""

    def make(original: Function) -> Function:
        def tell_loss(recovery: Any, segment: Any, position: int, offset: int) -> None:
            mark.hit()
            raise ValueError(f"{segment}: damaged at byte {position}")

        return tell_loss

    replace("urteil.broker.log.recovery:_Recovery._tell_loss", make)
