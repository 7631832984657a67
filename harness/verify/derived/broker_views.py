"""Responses of brokers: the leader of a partition (samples), the end of a log (offset_answers)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from urteil.harness.verify import evidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import CLOCK_SLACK_NS, FOREVER_NS

LEADER = "metadata_leader"
VIEW_METRICS = {
    LEADER: "leader",
    "metadata_leader_epoch": "leader_epoch",
    "metadata_in_sync": "isr_size",
}
"""Metrics of `samples` with labels topic and partition (or topic_id), from source `b<id>`."""
MOST = (1 << 31) - 1
"""Broker ids and epochs are below this limit: they have 32 bits."""


def view_rows(
    run_dir: Path,
    numbers: dict[tuple[str, int], int],
    topic_ids: dict[str, str],
    begin_ns: int,
) -> list[Row]:
    """Rows of the table `views`: a partition's leader, leader epoch and number of in-sync replicas,
    as one broker returned them. Samples from before the run's begin are left out: their clock is
    another one."""
    rows: dict[tuple[int, int, int], Row] = {}
    for row in evidence.samples(run_dir, VIEW_METRICS):
        place = _place(row, numbers, topic_ids)
        if place is None or not _is_possible(row, begin_ns):
            continue
        p, broker = place
        view = rows.setdefault(
            (p, broker, row["at_ns"]), {"p": p, "broker": broker, "at_ns": row["at_ns"]}
        )
        view[VIEW_METRICS[row["metric"]]] = int(row["value"])
    return [view for view in rows.values() if "leader" in view]


def since_creation(views: list[Row], spans: Mapping[int, Sequence[Span]]) -> list[Row]:
    """`views` without the responses before the partition's first state. They concern an earlier
    topic of the same name, since labels need not contain the topic id."""
    created_ns = {
        p: versions[0].begin_ns - CLOCK_SLACK_NS
        for p, versions in spans.items()
        if versions[0].version == 0
    }
    return [
        view for view in views
        if view["at_ns"] is None or view["at_ns"] >= created_ns.get(view["p"], -FOREVER_NS)
    ]  # fmt: skip


def without_late_isr(views: list[Row], spans: Mapping[int, Sequence[Span]]) -> list[Row]:
    """`views` without the ISR sizes that the brokers need not know yet.

    Before 2.7 a leader writes its ISR into ZooKeeper. It notifies the controller by a task that
    runs every 2.5 seconds, once the ISR has not changed for five seconds.
    """
    return [_without_late_isr(view, spans.get(view["p"], ())) for view in views]


def _without_late_isr(view: Row, spans: Sequence[Span]) -> Row:
    is_late = any(
        span.begin_ns - CLOCK_SLACK_NS <= view["at_ns"] < span.begin_ns + ISR_NEWS_NS
        for span in spans
    )
    return {name: value for name, value in view.items() if not (is_late and name == "isr_size")}


def _is_possible(row: Row, begin_ns: int) -> bool:
    at_ns, value = row["at_ns"], row["value"]
    return value is not None and -1 <= value < MOST and (at_ns is None or at_ns >= begin_ns)


def _place(
    row: Row, numbers: dict[tuple[str, int], int], topic_ids: dict[str, str]
) -> tuple[int, int] | None:
    """Partition number and broker id; None where the row names no known ones."""
    try:
        labels: Any = json.loads(row["labels"] or "{}")
        topic_id = labels.get("topic_id") or topic_ids[labels["topic"]]
        p = numbers[topic_id, int(labels["partition"])]
        broker = int(str(row["source"]).removeprefix("b"))
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    return (p, broker) if broker < MOST else None


ISR_NEWS_NS = 15_000_000_000
"""7.5 s until the notification of an ISR change, and as much again until every broker has it."""
KINDS = tuple(
    (kind, kind) for kind in ("latest", "stable", "earliest", "epoch", "before", "max", "producer")
)
LATEST_MS = (1 << 63) - 1
_NUMBER = re.compile(r"\d+")
_SPECIAL = {"-1": "latest", "-2": "earliest", "-3": "max", "end": "latest", "start": "earliest"}


def answer_rows(run_dir: Path, numbers: dict[tuple[str, int], int]) -> list[Row]:
    """Rows of the table `answers`: `offset_answers` with parsed queries.

    `kind` is latest, stable, earliest, max, epoch, before, producer or time. `requested_ms` is the
    requested timestamp: the number in the query, or else the row's timestamp. `answered_ms` is the
    timestamp in the response to `time` or `max`. `requested_epoch` is the epoch whose end was
    requested, `current_epoch` the leader epoch that the request named (OffsetForLeaderEpoch).
    """
    rows = []
    for row in evidence.rows(run_dir, "offset_answers"):
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is None or row["invoke_ns"] is None or row["complete_ns"] is None:
            continue
        query = str(row["query"] or "").lower()
        kind = _SPECIAL.get(query) or next((k for word, k in KINDS if word in query), "time")
        values = [min(int(number), LATEST_MS) for number in _NUMBER.findall(query)]
        requested_ms = values[0] if values else row["timestamp_ms"]
        answered_ms = row["timestamp_ms"] if kind == "max" or (kind == "time" and values) else None
        epochs = values if kind == "epoch" and len(values) == 2 else (None, None)
        rows.append(
            {"p": p, "kind": kind, "query": query}
            | {"requested_ms": requested_ms if kind == "time" else None}
            | {"requested_epoch": epochs[0], "current_epoch": epochs[1], "answered_ms": answered_ms}
            | {name: row[name] for name in _SAME}
        )
    return rows


_SAME = ("node", "invoke_ns", "complete_ns", "api_version", "offset", "leader_epoch", "error")
