"""Answers OFFSET_NOT_AVAILABLE for every latest offset."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the latest offset is never available, however long its leader leads"
MODELS = "KIP-207: a high watermark that never counts as its epoch's own"
SCENARIO = "group-calm"
GUARANTEE = "no_delivery"
LATEST = -1


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def answer(broker: Any, version: int, request: Any, topic: str, asked: Any) -> Any:
            from urteil.broker.api.list_offsets import _refused

            if asked.timestamp == LATEST and not topic.startswith("__"):
                mark.hit()
                return _refused(asked, ErrorCode.OFFSET_NOT_AVAILABLE)
            return original(broker, version, request, topic, asked)

        return answer

    replace("urteil.broker.api.list_offsets:_answer", make)
