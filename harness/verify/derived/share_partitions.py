"""Share groups and the partitions that they consume: rows of the table `share_partitions`.

A record that no member accepts is archived at the group's delivery limit. A delivery counts when a
broker acquires the record, even if the response is lost or its receiver is killed.
`unseen_deliveries` is the number of such deliveries that one record may have: one in each fault,
and another for each lock that expired during it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from urteil.chaos.faults.base.fault import EXTERNAL, target_kind
from urteil.harness.clients.options import ShareOptions
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import SECOND_NS

LIMIT = "group.share.delivery.count.limit"
DEFAULT_LIMIT = 5
SLACK_NS = 8 * SECOND_NS
"""The time in which a group whose members poll may leave an available record."""


@dataclass(slots=True)
class _Group:
    """The clients and topics of a group, and the times of its first and last polls."""

    clients: set[str] = field(default_factory=set)
    topic_ids: set[str] = field(default_factory=set)
    from_ns: int | None = None
    polled_ns: int = 0


def share_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """A row for each share group and partition of the run's topics that it received records from.

    `delivery_limit` is null where it is unknown. Until `drained_ns` the members had time to receive
    all available records; -1 if a fault still acted then.
    """
    if facts.runtime == IMPORTED:
        return []
    lock_ns = ShareOptions.of(scenario.workload).lock_ms * 1_000_000
    is_known = target_kind(scenario.target) != EXTERNAL
    delivery_limit = int(scenario.cluster.config.get(LIMIT, DEFAULT_LIMIT)) if is_known else None
    rows: list[Row] = []
    for name, group in sorted(_groups(run_dir).items()):
        drained_ns = group.polled_ns - lock_ns - SLACK_NS
        life = Interval(group.from_ns or 0, drained_ns)
        acting = [
            interval for interval in map(acting_interval, small.faults) if interval.meets(life)
        ]
        is_drained = all(interval.end_ns <= drained_ns for interval in acting)
        columns = {
            "grp": name,
            "lock_ns": lock_ns,
            "delivery_limit": delivery_limit,
            "unseen_deliveries": _unseen_deliveries(acting, lock_ns) if is_drained else 0,
            "drained_ns": drained_ns if is_drained else -1,
        }
        rows += [
            columns | {"p": p}
            for key, p in small.numbers.items()
            if key[0] in group.topic_ids and key[0] in small.topics and key not in small.deleted
        ]
    return rows


def _unseen_deliveries(acting: Sequence[Interval], lock_ns: int) -> int:
    return sum(2 + (interval.end_ns - interval.begin_ns) // lock_ns for interval in acting)


def _groups(run_dir: Path) -> dict[str, _Group]:
    groups: dict[str, _Group] = defaultdict(_Group)
    for name, client, topic_id, requested_ns, read_ns in _columns(
        run_dir, "deliveries", "group client topic_id requested_ns read_ns"
    ):
        if None in (name, client, topic_id, requested_ns, read_ns):
            continue
        group = groups[name]
        group.clients.add(client)
        group.topic_ids.add(topic_id)
        group.from_ns = min(group.from_ns or requested_ns, requested_ns)
        group.polled_ns = max(group.polled_ns, read_ns)
    group_of = {client: group for group in groups.values() for client in group.clients}
    for client, complete_ns, outcome in _columns(run_dir, "polls", "client complete_ns outcome"):
        if client in group_of and outcome == "ok" and complete_ns is not None:
            group_of[client].polled_ns = max(group_of[client].polled_ns, complete_ns)
    return groups


def _columns(run_dir: Path, table: str, names: str) -> Iterator[tuple[Any, ...]]:
    """Some columns of a table, row by row."""
    for part in evidence.files(run_dir, table):
        for batch in evidence.batches(part, names.split()):
            yield from zip(*map(evidence.column_values, batch.columns), strict=True)
