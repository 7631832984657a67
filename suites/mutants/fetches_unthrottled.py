"""Records no fetched bytes for the consumer quota."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the consumer quota counts no bytes and delays no client"
MODELS = "a quota that is measured and not enforced"
SCENARIO = "quotas"
GUARANTEE = "quota_exceeded"


def apply(mark: Mark) -> None:
    def make_wait(original: Function) -> Function:
        def fetch_wait_ms(broker: Any, context: Any, size_bytes: int) -> int:
            if original(broker, context, size_bytes):
                mark.hit()
            return 0

        return fetch_wait_ms

    def make_at_once(_: Function) -> Function:
        def fetch_at_once(broker: Any, context: Any, max_bytes: int) -> int:
            return max_bytes

        return fetch_at_once

    replace("urteil.broker.api.fetch:fetch_wait_ms", make_wait)
    replace("urteil.broker.api.fetch:fetch_at_once", make_at_once)
