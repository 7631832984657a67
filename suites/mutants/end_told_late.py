"""The latest offset is told as it was a while ago."""

from __future__ import annotations

import time
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets answers an end that is up to two seconds old, whatever was committed since"
MODELS = "an end told before it is known, as before KIP-207"
SCENARIO = "indexes"
GUARANTEE = "end_below_ack"
LATEST = -1
KEPT_S = 2.0


def apply(mark: Mark) -> None:
    """Each partition's end is kept for a while, in each epoch of its leader."""
    known: dict[tuple[str, int, int], tuple[float, int]] = {}

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp_ms: int, **asked: Any) -> Any:
            found = await original(partition, timestamp_ms, **asked)
            if timestamp_ms != LATEST or found.offset < 0:
                return found
            key = (partition.topic, partition.partition, partition.leader_epoch)
            at_s, offset = known.setdefault(key, (time.monotonic(), found.offset))
            if time.monotonic() - at_s > KEPT_S:
                known[key] = (time.monotonic(), found.offset)
                return found
            if offset < found.offset:
                mark.hit()
            return changed(found, offset=offset)

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
