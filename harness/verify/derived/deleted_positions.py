"""Deletions of committed positions (OffsetDelete, DeleteGroups), treated as writes of no position.

Apache Kafka acknowledges a deletion when its coordinator has removed the position and appended a
tombstone. It does not wait for followers, and it acknowledges the deletion even where the append
fails (`GroupMetadataManager.cleanupGroupMetadata`). A coordinator that takes over before its
followers had the tombstone may return the position again, and a coordinator that resigns meanwhile
may have written no tombstone. So a deletion is binding only if one coordinator stayed and no fault
acted until every follower had the tombstone or was out of sync. A commit that is concurrent with
the deletion may be stored before it and acknowledged after it: then the outcome is open.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from urteil.harness.evidence.acts import DELETE_POSITION
from urteil.harness.scenario import Scenario
from urteil.harness.topic_settings import setting
from urteil.harness.verify.derived.coordinators import Coordinators
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.linearizability import Op

Key = tuple[str, int]
_MS_NS = 1_000_000


def deletions(ops: Iterable[Row], numbers: Mapping[Key, int]) -> dict[Key, list[Op]]:
    """The deletions by group and partition, in order. A deletion that was not acknowledged never
    completes."""
    deletions: dict[Key, list[Op]] = {}
    for row in sorted(ops, key=lambda row: int(row["invoke_ns"] or 0)):
        if row["act"] != DELETE_POSITION or row["outcome"] == "fail" or row["invoke_ns"] is None:
            continue
        place: Any = json.loads(row["after"] or "{}")
        p = numbers.get((place.get("topic_id"), place.get("partition")))
        if p is not None and row["subject"] is not None:
            done = row["outcome"] == "ok" and row["complete_ns"] is not None
            end_ns = max(row["complete_ns"], row["invoke_ns"]) if done else math.inf
            deletions.setdefault((row["subject"], p), []).append(Op(row["invoke_ns"], end_ns, None))
    return deletions


def settled_deletions(
    group: str,
    commits: list[Op],
    requested: list[Op],
    coordinators: Coordinators,
    scenario: Scenario,
) -> list[Op]:
    """The deletions of one committed offset among its `commits`, with commits that may undo them:
    the last offset committed before a deletion, or concurrently, may be returned again at any time.
    """
    deletions = []
    for deletion in requested:
        concurrent = [
            op
            for op in commits
            if op.invoke_ns < deletion.complete_ns and op.complete_ns > deletion.invoke_ns
        ]
        is_binding = deletion.is_complete and not concurrent
        deletions.append(deletion if is_binding else Op(deletion.invoke_ns, math.inf, None))
        until_ns = deletion.complete_ns + in_sync_ns(scenario)
        if is_binding and coordinators.is_steady(group, deletion.invoke_ns, int(until_ns)):
            continue
        before = [op for op in commits if op.complete_ns <= deletion.invoke_ns]
        last = sorted(before, key=lambda op: op.complete_ns)[-1:]
        deletions += [Op(deletion.invoke_ns, math.inf, op.value) for op in [*last, *concurrent]]
    return deletions


def in_sync_ns(scenario: Scenario) -> int:
    """The time after which a follower has its leader's records or is out of sync."""
    return int(1.5 * float(setting(None, scenario, "replica.lag.time.max.ms"))) * _MS_NS
