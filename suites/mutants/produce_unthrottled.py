"""The quota of producers limits nobody."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "what producers write is measured by their quota, and never held up"
MODELS = "a quota that is measured, and not enforced"
SCENARIO = "quotas"
GUARANTEE = "quota_exceeded"


def apply(mark: Mark) -> None:
    """No time of waiting at all."""

    def make(original: Function) -> Function:
        def wait_of(throttle: Any, context: Any, body: Any, size_bytes: int, spent_s: float) -> int:
            if original(throttle, context, body, size_bytes, spent_s):
                mark.hit()
            return 0

        return wait_of

    replace("urteil.broker.server.dispatch:wait_of", make)
