"""Answers ListOffsets from a cache of two seconds for each leader epoch."""

from __future__ import annotations

import time
from dataclasses import replace as changed
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets reports a latest offset that is up to two seconds old"
MODELS = "a latest offset that is reported before it is certain, as before KIP-207"
SCENARIO = "indexes"
GUARANTEE = "end_below_ack"
LATEST = -1
KEPT_S = 2.0


def apply(mark: Mark) -> None:
    known: dict[tuple[str, int, int], tuple[float, int]] = {}

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp_ms: int, **asked: Any) -> Any:
            result = await original(partition, timestamp_ms, **asked)
            if timestamp_ms != LATEST or result.offset < 0:
                return result
            key = (partition.topic, partition.partition, partition.leader_epoch)
            at_s, offset = known.setdefault(key, (time.monotonic(), result.offset))
            if time.monotonic() - at_s > KEPT_S:
                known[key] = (time.monotonic(), result.offset)
                return result
            if offset < result.offset:
                mark.hit()
            return changed(result, offset=offset)

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
