"""The time of a client's requests is not limited."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "request_percentage is not looked at"
MODELS = "a quota that nobody enforces (KIP-124)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """No wait for time."""

    def make(original: Function) -> Function:
        def spend(throttle: Any, quota: Any, user: str, client_id: str, amount: float) -> int:
            wait_ms = int(original(throttle, quota, user, client_id, amount))
            if quota.name != "REQUEST" or not wait_ms:
                return wait_ms
            mark.hit()
            return 0

        return spend

    replace("urteil.broker.quotas.throttle:Throttle.spend", make)
