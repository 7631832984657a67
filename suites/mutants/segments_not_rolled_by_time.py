"""Reports no segment as due by time."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "segment.ms is ignored"
MODELS = "a log that rolls by size only"
SCENARIO = "mixed"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_old(segment: Any, config: Any, max_timestamp_ms: int, now_ms: int) -> bool:
            if original(segment, config, max_timestamp_ms, now_ms):
                mark.hit()
            return False

        return is_old

    replace("urteil.broker.log.segment:LogSegment._is_old", make)
