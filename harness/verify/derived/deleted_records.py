"""The offsets that DeleteRecords requests named for a partition, and the low watermarks that they
returned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.scenario import TopicFact
from urteil.harness.verify.derived.fault_effects import OF_DISKS, has_any
from urteil.harness.verify.derived.impact import BROKER, acting_interval
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
"""Effects by which a broker may end without writing its log starts to disk; a broker that shuts
down writes them."""


def deletions(
    ops: Iterable[Row], faults: Iterable[Row], topic: TopicFact | None, partition: int
) -> Row:
    """Columns of the derived table `partitions`.

    `cut_end` is the highest offset up to which administrators may have deleted records. It is null
    where it is not known, and where an administrator changed retention. `deleted_to` is the highest
    low watermark that a response named, received at `deleted_ns`. It is null without such a
    response, and where all replicas ended later: brokers write log starts to disk once a minute.
    """
    trimming = [op for op in ops if trims(op, topic)]
    requested = [_offset(op, "offsets", partition) for op in trimming]
    acknowledged = [
        (offset, op["complete_ns"])
        for op in trimming
        if op["outcome"] == "ok" and op["act"] == ACT
        and (offset := _offset(op, "low_watermarks", partition)) is not None
    ]  # fmt: skip
    deletion: tuple[int | None, int | None] = max(acknowledged, default=(None, None))
    replicas = 0 if topic is None else topic.replication_factor
    if deletion[1] is not None and len(set(_ended_brokers(faults, deletion[1]))) >= replicas:
        deletion = (None, None)
    known = [offset for offset in requested if offset is not None]
    return {
        "cut_end": max(known) if known and len(known) == len(requested) else None,
        "deleted_to": deletion[0],
        "deleted_ns": deletion[1],
    }


def _offset(op: Row, name: str, partition: int) -> int | None:
    after: Any = json.loads(op["after"] or "{}")
    offsets = after.get(name, {}) if isinstance(after, dict) else {}
    offset = offsets.get(str(partition)) if isinstance(offsets, dict) else None
    return offset if isinstance(offset, int) else None


def _ended_brokers(faults: Iterable[Row], since_ns: int) -> Iterator[str]:
    """Brokers that a fault may have ended after `since_ns`."""
    for fault in faults:
        if has_any(fault, ENDS_BROKERS) and acting_interval(fault).end_ns > since_ns:
            yield from filter(BROKER.fullmatch, targets_of(fault))
