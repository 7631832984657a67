"""Raises an error for a torn last batch in place of truncating it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log whose last batch is torn ends the broker that recovers it"
MODELS = "a recovery that fails after a power cut"
SCENARIO = "power-cut"
GUARANTEE = "unexpected_exit"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def tell_loss(recovery: Any, segment: Any, position: int, offset: int) -> None:
            mark.hit()
            raise ValueError(f"{segment}: damaged at byte {position}")

        return tell_loss

    replace("urteil.broker.log.recovery:_Recovery._log_loss", make)
