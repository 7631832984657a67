"""Omits partitions whose high watermark alone has changed."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch session reports a new high watermark only together with records"
MODELS = "KIP-227: sessions without updates of the high watermark"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def still(cached: Any) -> Any:
            result = original(cached)
            if result is not None:
                mark.hit()
            return None

        return still

    replace("urteil.broker.replication.fetch_sessions:_Cached.still", make)
