"""Retention finds no segment too old."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "segments whose retention time is over are kept"
MODELS = "a retention task that died: the log grows for ever"
SCENARIO = "deletion"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """None is ever too old."""

    def make(original: Function) -> Function:
        def too_old(log: Any, now_ms: int) -> int:
            if original(log, now_ms):
                mark.hit()
            return 0

        return too_old

    replace("urteil.broker.log.segment_retention:_too_old", make)
