"""Compares the rate with twice the quota."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "clients are delayed only above twice their quota"
MODELS = "a rate measured over half of its windows"
SCENARIO = "quotas"
GUARANTEE = "quota_exceeded"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def throttle(rate: Any, limit: float, now_ms: float) -> int:
            mark.hit()
            return int(original(rate, 2 * limit, now_ms))

        return throttle

    replace("urteil.broker.base.rates:Rate.throttle_ms", make)
