"""Nothing, and something that is empty, look alike in a buffer."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records without a value have an empty one when their batch is packed anew"
MODELS = "a null and an empty value told apart by nobody: tombstones that are none"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Pack what is not there as what has no bytes."""

    def make(original: Function) -> Function:
        def anew(records: Any, **more: Any) -> Any:
            if any(value is None for _, value, _, _ in records):
                mark.hit()
            return original([(k, v or b"", h, at) for k, v, h, at in records], **more)

        return anew

    replace("urteil.broker.log.admission:written_anew", make)
