"""Answers ListOffsets with the first log start offset that was ever reported."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = (
    "a leader reports the log start offset that it reported first, whatever retention deleted since"
)
MODELS = "a log start offset that is cached for ListOffsets and that retention does not update"
SCENARIO = "retention"
GUARANTEE = "no_delivery"
EARLIEST = -2


def apply(mark: Mark) -> None:
    reported: dict[Any, int] = {}

    def make(original: Function) -> Function:
        def find(partition: Any, timestamp: int, **more: Any) -> Any:
            answer = original(partition, timestamp, **more)
            if timestamp != EARLIEST or answer.offset < 0:
                return answer
            first = reported.setdefault((partition.topic_id, partition.partition), answer.offset)
            if first != answer.offset:
                mark.hit()
            return changed(answer, offset=first)

        return find

    replace("urteil.broker.api.list_offsets:find_offset", make)
