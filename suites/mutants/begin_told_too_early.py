"""Where a log began once, it begins for ever, for whoever asks."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader goes on to tell the begin that it told first, whatever retention took since"
MODELS = "a log start that is cached for ListOffsets and that retention does not move"
SCENARIO = "retention"
GUARANTEE = "no_delivery"
EARLIEST = -2


def apply(mark: Mark) -> None:
    """Remember each begin."""
    told: dict[Any, int] = {}

    def make(original: Function) -> Function:
        def find(partition: Any, timestamp: int, **more: Any) -> Any:
            found = original(partition, timestamp, **more)
            if timestamp != EARLIEST or found.offset < 0:
                return found
            first = told.setdefault((partition.topic_id, partition.partition), found.offset)
            if first != found.offset:
                mark.hit()
            return changed(found, offset=first)

        return find

    replace("urteil.broker.api.list_offsets:find_offset", make)
