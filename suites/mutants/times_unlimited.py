"""Accepts every timestamp."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a record whose timestamp is outside the topic's limits is appended"
MODELS = "KIP-937: limits that the leader ignores"
SCENARIO = "corrupt-client"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def refused(errors: Any) -> Any:
            if original(errors) is not None:
                mark.hit()
            return None

        return refused

    replace("urteil.broker.log.record_errors:RecordErrors.refused", make)
