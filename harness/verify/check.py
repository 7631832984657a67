"""Judges one guarantee on one engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from urteil.chaos.capabilities import describe_missing
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.guarantees import Guarantee
from urteil.harness.verify.result import Finding, GuaranteeResult, Status
from urteil.harness.verify.supporting_rows import find_supporting_rows

FINDINGS = 100
LONGEST = 300
"""The most characters of a text in a finding."""
_APART = ("sub_kind", "permitted", "p", "at_ns", "until_ns", "topic", "partition")


@dataclass(frozen=True, slots=True)
class Places:
    """Looks up topic, leader epoch and active faults by partition number and time."""

    derived: Derived

    def place_of(self, p: int | None) -> tuple[str | None, int | None]:
        for part in self.derived.partitions:
            if part["p"] == p:
                return part["topic"], part["partition"]
        return None, None

    def epoch(self, p: int | None, at_ns: int | None) -> tuple[int, int] | None:
        """Leader epoch and leader of the partition at a time, by ZooKeeper's state."""
        if at_ns is None:
            return None
        for span in self.derived.tables.get("state_spans", []):
            if span["p"] == p and span["begin_ns"] <= at_ns < span["end_ns"]:
                return span["leader_epoch"], span["leader"]
        return None

    def acting_faults(self, at_ns: int | None, until_ns: int | None) -> list[str]:
        if at_ns is None:
            return []
        window = Interval(at_ns, max(until_ns or at_ns, at_ns) + 1)
        return [
            f"{fault['fault']} {', '.join(targets_of(fault))}".strip()
            for fault in self.derived.faults
            if acting_interval(fault).meets(window)
        ]


def check(
    engine: Engine,
    guarantee: Guarantee,
    places: Places,
    present: set[str],
    limit: int = FINDINGS,
    tally: Row | None = None,
) -> GuaranteeResult:
    """Judge `guarantee`. An exception makes it unknown, with the reason, and is not raised again.

    `present` names the tables of evidence that have rows; `limit` bounds the findings kept (beyond
    FINDINGS they come without supporting rows); `tally` are its counts, where they are known.
    """
    if lack := describe_missing(guarantee.requires, places.derived.lacks):
        return _result(guarantee, Status.NOT_JUDGED, reason=lack)
    absent = [table for table in guarantee.needs if table not in present]
    if absent:
        return _result(guarantee, Status.NOT_JUDGED, reason=f"no {', '.join(absent)}")
    try:
        counts = tally or _tally(engine, guarantee, places.derived)
        return _judge(engine, guarantee, places, counts, limit=limit)
    except Exception as failure:
        text = " ".join(str(failure).split())[:300]
        return _result(
            guarantee,
            Status.UNKNOWN,
            reason=f"the check raised {type(failure).__name__}: {text}",
        )


def _tally(engine: Engine, guarantee: Guarantee, derived: Derived) -> Row:
    if not has_subject(guarantee, derived):
        return {"opportunities": 0, "violations": 0, "permitted": 0}
    return engine.query(guarantee.tally())[0]


def has_subject(guarantee: Guarantee, derived: Derived) -> bool:
    """Whether anything in the run may be an opportunity or a violation."""
    return not guarantee.subjects or any(_is_present(name, derived) for name in guarantee.subjects)


def _is_present(subject: str, derived: Derived) -> bool:
    """Whether a derived table has rows, of one kind (`cluster_tasks.leaderless`) if the subject
    names it, or a partition has a value in a column of `partitions` (`partitions.compacted`)."""
    table, _, word = subject.partition(".")
    rows = derived.tables.get(table) or ()
    if table == "partitions":
        return any(row.get(word) for row in rows)
    return any(not word or row["kind"] == word for row in rows)


def _result(guarantee: Guarantee, status: Status, **fields: Any) -> GuaranteeResult:
    return GuaranteeResult(
        name=guarantee.name,
        status=status,
        promise=guarantee.promise,
        source=guarantee.source,
        **fields,
    )


def _judge(
    engine: Engine,
    guarantee: Guarantee,
    places: Places,
    tally: Row,
    *,
    limit: int,
) -> GuaranteeResult:
    counts = {what: tally[what] or 0 for what in ("opportunities", "violations", "permitted")}
    violation_count = counts["violations"] + counts["permitted"]
    rows = engine.query(guarantee.first(limit)) if violation_count else []
    seen_by = find_supporting_rows(engine, rows) if limit <= FINDINGS else {}
    reason = ""
    if counts["violations"]:
        status = Status.VIOLATED
    elif guarantee.needs_complete_passes and places.derived.stopped_passes:
        status = Status.UNKNOWN
        reason = f"a final pass over {places.derived.stopped_passes[0]} stopped before its end"
    elif counts["permitted"]:
        status = Status.PERMITTED
    elif counts["opportunities"]:
        status = Status.HOLDS
    else:
        status, reason = Status.NOT_JUDGED, "no opportunity to see it broken"
    return _result(
        guarantee,
        status,
        reason=reason,
        findings=[
            _finding(guarantee, row, places, seen_by.get((row["p"], row["off"]), []))
            for row in rows
        ],
        **counts,
    )


def _finding(guarantee: Guarantee, row: Row, places: Places, seen_by: Sequence[Row]) -> Finding:
    topic, partition = places.place_of(row["p"])
    row = {name: _abbreviate(value) for name, value in row.items()}
    described = row | {"topic": topic, "partition": partition}
    library = places.derived.libraries.get(str(row.get("client")))
    if library:
        described["library"] = library
    return Finding(
        guarantee=guarantee.name,
        sub_kind=row["sub_kind"],
        sentence=guarantee.explain(described),
        permitted=row["permitted"],
        topic=topic,
        partition=partition,
        offset=row["off"],
        at_ns=row["at_ns"],
        records=[
            _record(row, places),
            *({n: _abbreviate(v) for n, v in o.items()} for o in seen_by),
        ],
        faults=places.acting_faults(row["at_ns"], row["until_ns"]),
    )


def _abbreviate(value: Any) -> Any:
    """The beginning of a long text, with its length."""
    if not isinstance(value, str) or len(value) <= LONGEST:
        return value
    return f"{value[:LONGEST]}... ({len(value):,} characters)"


def _record(row: Mapping[str, Any], places: Places) -> Row:
    record = {name: value for name, value in row.items() if name not in _APART}
    record["offset"] = record.pop("off", None)
    led = places.epoch(row["p"], row["at_ns"])
    if led and "leader_epoch" not in record:
        record["leader_epoch"], record["leader"] = led
    return {name: value for name, value in record.items() if value is not None}
