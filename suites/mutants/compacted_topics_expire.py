"""Applies retention by time whatever the cleanup policy."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "retention.ms applies to topics whose cleanup.policy is compact only"
MODELS = "retention that checks the time and ignores the policy"
SCENARIO = "tombstones"
GUARANTEE = "retained_too_short"


def apply(mark: Mark) -> None:
    from urteil.broker.log.segment_retention import _count_expired

    def make(original: Function) -> Function:
        def count_deletable(log: Any, now_ms: int) -> int:
            count: int = original(log, now_ms)
            if _count_expired(log, now_ms) > count:
                mark.hit()
            return max(count, _count_expired(log, now_ms))

        return count_deletable

    replace("urteil.broker.log.segment_retention:count_deletable", make)
