"""Reports no segment as expired."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "expired segments are kept"
MODELS = "a retention task that died"
SCENARIO = "deletion"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def too_old(log: Any, now_ms: int) -> int:
            if original(log, now_ms):
                mark.hit()
            return 0

        return too_old

    replace("urteil.broker.log.segment_retention:_count_expired", make)
