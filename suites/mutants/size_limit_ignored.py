"""Reports no log as too large."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "retention.bytes is ignored"
MODELS = "retention by size of the active segment only"
SCENARIO = "retention"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def too_much(log: Any) -> int:
            if original(log):
                mark.hit()
            return 0

        return too_much

    replace("urteil.broker.log.segment_retention:_count_beyond_size", make)
