"""What DeleteRecords requested for a partition, and which low watermark it answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.scenario import TopicFact
from urteil.harness.verify.derived.fault_effects import OF_DISKS, has_any
from urteil.harness.verify.derived.impact import BROKER, acting_stretch
from urteil.harness.verify.derived.retention_promises import trims
from urteil.harness.verify.evidence import Row, targets_of

ACT = "delete records"
ENDS_BROKERS = OF_DISKS | {
    Effect.KILLS_NODES,
    Effect.DAMAGES_FILES,
    Effect.LIMITS_MEMORY,
    Effect.UNPLUGS_NODES,
    Effect.EXHAUSTS_DESCRIPTORS,
}
"""Effects by which a broker may end, and what it remembers of its logs' starts with it; a broker
that shuts down writes them down."""


def deletions(
    ops: Iterable[Row], faults: Iterable[Row], topic: TopicFact | None, partition: int
) -> Row:
    """Columns of the derived table `partitions`.

    `cut_end`: up to where an administrator may have deleted, null where that is not known, or where
    somebody changed how long records stay. `deleted_to`: what was said to be gone, by `deleted_ns`;
    null where nothing was, and where all replicas were ended since: a log's start is written to
    disk once a minute.
    """
    about = [op for op in ops if trims(op, topic)]
    asked = [_offset(op, "offsets", partition) for op in about]
    done = [
        (offset, op["complete_ns"])
        for op in about
        if op["outcome"] == "ok" and op["act"] == ACT
        and (offset := _offset(op, "low_watermarks", partition)) is not None
    ]  # fmt: skip
    deletion: tuple[int | None, int | None] = max(done, default=(None, None))
    replicas = 0 if topic is None else topic.replication_factor
    if deletion[1] is not None and len(set(_ended_brokers(faults, deletion[1]))) >= replicas:
        deletion = (None, None)
    known = [offset for offset in asked if offset is not None]
    return {
        "cut_end": max(known) if known and len(known) == len(asked) else None,
        "deleted_to": deletion[0],
        "deleted_ns": deletion[1],
    }


def _offset(op: Row, name: str, partition: int) -> int | None:
    after: Any = json.loads(op["after"] or "{}")
    offsets = after.get(name, {}) if isinstance(after, dict) else {}
    offset = offsets.get(str(partition)) if isinstance(offsets, dict) else None
    return offset if isinstance(offset, int) else None


def _ended_brokers(faults: Iterable[Row], since_ns: int) -> Iterator[str]:
    """Brokers that may have been ended since then."""
    for fault in faults:
        if has_any(fault, ENDS_BROKERS) and acting_stretch(fault).end_ns > since_ns:
            yield from filter(BROKER.fullmatch, targets_of(fault))
