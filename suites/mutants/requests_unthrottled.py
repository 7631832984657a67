"""Returns no delay for request time."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "request_percentage is ignored"
MODELS = "KIP-124: a quota that is not enforced"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def spend(throttle: Any, quota: Any, user: str, client_id: str, amount: float) -> int:
            wait_ms = int(original(throttle, quota, user, client_id, amount))
            if quota.name != "REQUEST" or not wait_ms:
                return wait_ms
            mark.hit()
            return 0

        return spend

    replace("urteil.broker.quotas.throttle:Throttle.spend", make)
