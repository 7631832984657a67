"""Files that should no longer be on any disk: logs of deleted topics and of replicas that were
moved away, and files that brokers had marked for deletion.

ZooKeeper keeps a topic until every replica of it was deleted, so no log of it may exist after that.
The controller deletes a replica that was moved away by one request, if its broker is up and the
controller stays. Files that are marked for deletion disappear after `file.delete.delay.ms`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.evidence.readers.deleted_files import GONE_FILE, METRIC
from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.fault_effects import ADMIN_TASKS, OF_DISKS, has_any
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.limits import CLOCK_SLACK_NS, SECOND_NS
from urteil.harness.verify.validation import cell_checks

MOVED, DELETED, SET_ASIDE = "moved", "deleted", "set aside"
SLACK_S = 15.0
_TOPICS = "/brokers/topics/"
_DELAY_MS, _FIRST_MS = 60_000, 30_000
"""Kafka's defaults of `log.segment.delete.delay.ms` and `log.initial.task.delay.ms`."""
_STRAY = re.compile(r"nodes/b(?P<broker>\d+)/data/(?:disk\d+/)?(?P<topic>.+)-(?P<partition>\d+)")


def leftover_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """Rows of the table `leftover_logs`: files that had to be deleted. `late` is 1 where one still
    exists after its limit."""
    end_ns = max((phase.end_ns for phase in facts.phases), default=0)
    damaged_nodes = {
        node
        for fault in small.faults
        if has_any(fault, OF_DISKS | {Effect.MOVES_CLOCKS})
        for node in targets_of(fault)
    }
    rows = [
        *_deleted_rows(small, end_ns),
        *_moved_rows(run_dir, small, end_ns),
        *_set_aside_rows(run_dir, small, scenario, end_ns),
    ]
    for row in rows:
        late = row["age_s"] is not None and row["age_s"] > row["limit_s"]
        row["late"] = int(late and f"b{row['broker']}" not in damaged_nodes)
    return rows


def _deleted_rows(small: SmallEvidence, end_ns: int) -> Iterator[Row]:
    """Partitions of deleted topics, and the brokers that still have a log of them."""
    deleted_ns = {
        (row["topic_id"], row["partition"]): row["at_ns"]
        for row in small.states
        if row["version"] == -1 and row["partition"] is not None
    }
    for key in sorted(small.deleted):
        p = small.numbers.get(key)
        brokers = [row["broker"] for row in small.logs.get(-1 if p is None else p, [])]
        age_s = (end_ns - deleted_ns[key]) / SECOND_NS
        for broker in brokers or [None]:
            known_age_s = None if broker is None else age_s
            yield _row(DELETED, p, broker, None, known_age_s, 0.0)


def _moved_rows(run_dir: Path, small: SmallEvidence, end_ns: int) -> Iterator[Row]:
    """Replicas that were moved away while their broker and the controller stayed, and whether their
    broker still has a log of them."""
    stray = set()
    for row in evidence.rows(run_dir, "manifest"):
        match = _STRAY.fullmatch(str(row["file"])) if row["kind"] == "stray_log" else None
        if match:
            stray.add((match["topic"], int(match["partition"]), int(match["broker"])))
    for (topic, partition, broker), since_ns in _moves(small).items():
        quiet_ns = _quiet_ns(small, broker, since_ns)
        if quiet_ns is None:
            continue
        is_left = (topic, partition, broker) in stray
        age_s = (end_ns - quiet_ns) / SECOND_NS if is_left else None
        topic_id = next(
            (declared.topic_id for declared in small.topics.values() if declared.name == topic),
            None,
        )
        p = None if topic_id is None else small.numbers.get((topic_id, partition))
        yield _row(MOVED, p, broker, f"{topic}-{partition}", age_s, SLACK_S)


def _moves(small: SmallEvidence) -> dict[tuple[str, int, int], int]:
    """The last time at which each broker was removed from a partition's replicas."""
    had: dict[str, dict[str, set[int]]] = {}
    left: dict[tuple[str, int, int], int] = {}
    for row in sorted(small.states, key=lambda row: int(row["zxid"])):
        path = str(row["path"])
        if not path.startswith(_TOPICS) or row["partition"] is not None:
            continue
        topic = path.removeprefix(_TOPICS)
        assignment: dict[str, Any] = json.loads(row["replicas"] or "{}")
        current = {partition: set(replicas) for partition, replicas in assignment.items()}
        for partition, replicas in had.get(topic, {}).items():
            for broker in replicas - current.get(partition, replicas):
                left[topic, int(partition), broker] = row["at_ns"]
        for partition, replicas in current.items():
            for broker in replicas:
                left.pop((topic, int(partition), broker), None)
        had[topic] = current
    return left


def _quiet_ns(small: SmallEvidence, broker: int, since_ns: int) -> int | None:
    """The time from which nothing delayed a deletion. None where the broker or a controller left or
    came since shortly before, or a fault was never healed: then the broker may not know of the
    deletion."""
    presence = (f"/brokers/ids/{broker}", "/controller")
    for row in small.states:
        if row["path"] in presence and row["at_ns"] > since_ns - CLOCK_SLACK_NS:
            return None
    ends = [
        acting_interval(fault).end_ns
        for fault in small.faults
        if fault["acted"] and not has_any(fault, ADMIN_TASKS)
    ]
    unhealed = any(fault["healed_ns"] is None for fault in small.faults if fault["acted"])
    return None if unhealed else max([since_ns, *ends])


def _set_aside_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, end_ns: int
) -> Iterator[Row]:
    """Files that brokers had marked for deletion. Their age counts from the broker's last start at
    the earliest."""
    started = {
        row["path"]: row["at_ns"]
        for row in sorted(small.states, key=lambda row: int(row["zxid"]))
        if str(row["path"]).startswith("/brokers/ids/") and row["version"] != -1
    }
    for row in evidence.samples(run_dir, (METRIC,)):
        path = str(cell_checks.labels(row).get("path"))
        broker = int(str(row["source"]).removeprefix("b"))
        since_ns = started.get(f"/brokers/ids/{broker}")
        if since_ns is not None and row["value"] is not None:
            age_s = min(row["value"], (end_ns - since_ns) / SECOND_NS)
            limit_s = _delay_ms(path, small, scenario) / 1000 + SLACK_S
            yield _row(SET_ASIDE, None, broker, path, age_s, limit_s)


def _delay_ms(path: str, small: SmallEvidence, scenario: Scenario) -> int:
    """The time that a file may stay after it was marked: the topic's setting for a segment, the
    brokers' setting for a directory. The topic's setting is deleted with the topic, and brokers may
    start the task late."""
    brokers = scenario.cluster.config
    delay = brokers.get("log.segment.delete.delay.ms", str(_DELAY_MS))
    if not path.endswith(GONE_FILE):
        return int(delay) + int(brokers.get("log.initial.task.delay.ms", str(_FIRST_MS)))
    topic = Path(path).parent.name.rpartition("-")[0]
    own = next(
        (declared.config for declared in small.topics.values() if declared.name == topic), {}
    )
    return int(own.get("file.delete.delay.ms", delay))


def _row(
    kind: str,
    p: int | None,
    broker: int | None,
    name: str | None,
    age_s: float | None,
    limit_s: float,
) -> Row:
    return {
        "kind": kind, "p": p, "broker": broker, "name": name, "age_s": age_s, "limit_s": limit_s,
    }  # fmt: skip
