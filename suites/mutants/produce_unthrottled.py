"""Returns no delay for the producer quota."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the producer quota is measured and delays no client"
MODELS = "a quota that is measured and not enforced"
SCENARIO = "quotas"
GUARANTEE = "quota_exceeded"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def wait_of(throttle: Any, context: Any, body: Any, size_bytes: int, spent_s: float) -> int:
            if original(throttle, context, body, size_bytes, spent_s):
                mark.hit()
            return 0

        return wait_of

    replace("urteil.broker.api.dispatch:wait_of", make)
