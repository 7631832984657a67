"""Small tables that queries of rare states share, from a run's small evidence.

Lists of brokers and effects are texts such as `,1,2,`, so that membership is a search for `,1,`.
Rows about leaders, ISRs, brokers and controllers end with the load: in the final reads the lab
itself moves leaders.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from urteil.chaos.topology import node_id
from urteil.harness.evidence.fault_effects import effects_of
from urteil.harness.scenario import RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.broker_views import view_rows
from urteil.harness.verify.derived.coordinators import coordinating_partition
from urteil.harness.verify.derived.impact import BROKER
from urteil.harness.verify.derived.small_evidence import Key, SmallEvidence, read
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.derived.tables import DERIVED, DerivedTable
from urteil.harness.verify.evidence import Row, nodes_of
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from urteil.harness.verify.limits import FOREVER_NS

GROUP, TRANSACTION = "group", "transaction"
_BROKERS = "/brokers/ids/"

PREPARED: dict[str, DerivedTable] = {
    "load_span": DerivedTable(
        "the load of the run, and wall clock minus CLOCK_MONOTONIC: one row",
        "begin_ns:l end_ns:l wall_ns:l",
    ),
    "versions": DerivedTable(
        "a version of a partition's state, with the one before it; `last_isr` is the last ISR "
        "before it that was not empty",
        "p:l topic_id:s topic:s partition:i at_ns:l until_ns:l leader:i epoch:i "
        "controller_epoch:i isr:s isr_size:i replicas:s preferred:i replication:i "
        "prev_at_ns:l prev_leader:i prev_epoch:i prev_controller_epoch:i prev_isr:s "
        "prev_isr_size:i last_isr:s unclean:i",
        made_of=("states",),
    ),
    "absences": DerivedTable(
        "a time in which a replica was not in the ISR; the last columns are null if it stayed away",
        "p:l broker:i left_ns:l left_epoch:i led:i back_ns:l back_epoch:i back_leader:i",
        made_of=("states",),
    ),
    "presences": DerivedTable(
        "a time in which a broker was registered",
        "broker:i from_ns:l until_ns:l",
        made_of=("states",),
    ),
    "terms": DerivedTable(
        "the term of a controller, with the end of the term before it",
        "controller:i from_ns:l until_ns:l prev_controller:i prev_until_ns:l",
        made_of=("states",),
    ),
    "moves": DerivedTable(
        "a reassignment of a partition, from its first change of the replicas until its last, or "
        "until the new replicas were in the ISR",
        "p:l topic:s from_ns:l until_ns:l added:s removed:s",
        made_of=("states",),
    ),
    "coordinators": DerivedTable(
        "a leader epoch of the partition that coordinates a group or a transactional id; of the "
        "first one, `prev_leader` is null",
        "kind:s name:s from_ns:l leader:i epoch:i prev_leader:i",
        made_of=("states", "clients"),
    ),
    "strikes": DerivedTable(
        "a node under a fault that acted; `healing_ns` is the begin of healing, `end_ns` its end",
        "n:i fault:s effects:s node:s broker:i begin_ns:l healing_ns:l end_ns:l",
        made_of=("faults",),
    ),
    "epoch_starts": DerivedTable(
        "a leader epoch in a replica's log",
        "p:l broker:i epoch:i start:l log_start:l log_end:l",
        made_of=("logs",),
    ),
    "views": DERIVED["views"],
    "places": DerivedTable("a partition of the evidence", "p:l topic_id:s partition:i"),
}
"""Prepared table to its declaration. `p` is the ordinal of (topic_id, partition) everywhere."""


def prepare(run_dir: Path, facts: RunFacts, names: Iterable[str]) -> dict[str, list[Row]]:
    """The rows of the named tables."""
    run = _Run.of(run_dir, facts)
    return {name: list(_TABLES[name](run)) for name in names}


@dataclass(frozen=True, slots=True)
class _Run:
    """The small evidence of a run with the time of its load."""

    run_dir: Path
    facts: RunFacts
    small: SmallEvidence
    begin_ns: int
    end_ns: int

    @classmethod
    def of(cls, run_dir: Path, facts: RunFacts) -> _Run:
        setups = [phase.end_ns for phase in facts.phases if phase.name == "setup"]
        finals = [phase.begin_ns for phase in facts.phases if phase.name == "final"]
        begin_ns, end_ns = min(setups, default=-FOREVER_NS), min(finals, default=FOREVER_NS)
        return cls(run_dir, facts, read(run_dir, facts), begin_ns, end_ns)

    def numbered_partitions(self) -> Iterator[tuple[int, Key]]:
        for key, p in self.small.numbers.items():
            yield p, key

    def spans(self) -> Iterator[tuple[int, Key, list[Span]]]:
        """The versions of each partition's state that began before the end of the load."""
        for p, key in self.numbered_partitions():
            yield p, key, [s for s in self.small.spans.get(p, []) if s.begin_ns < self.end_ns]

    def changes(self, path: str) -> list[Row]:
        """The states of znodes below `path` until the end of the load, in order."""
        rows = [r for r in self.small.states if (r["path"] or "").startswith(path)]
        return sorted((r for r in rows if r["at_ns"] < self.end_ns), key=lambda r: int(r["zxid"]))


def _text(items: Iterable[object]) -> str:
    return "," + "".join(f"{item}," for item in items)


def _load_span(run: _Run) -> Iterator[Row]:
    yield {"begin_ns": run.begin_ns, "end_ns": run.end_ns, "wall_ns": run.small.wall_ns}


def _places(run: _Run) -> Iterator[Row]:
    for p, (topic_id, partition) in run.numbered_partitions():
        yield {"p": p, "topic_id": topic_id, "partition": partition}


def _versions(run: _Run) -> Iterator[Row]:
    assigned = _replicas_by_version(run)
    for p, (topic_id, partition), spans in run.spans():
        for span in spans:
            before, replicas = span.previous, assigned.get((p, span.begin_ns, span.version), [])
            yield {
                "p": p, "topic_id": topic_id, "topic": span.topic, "partition": partition,
                "at_ns": span.begin_ns, "until_ns": min(span.end_ns, run.end_ns),
                "leader": span.leader, "epoch": span.leader_epoch,
                "controller_epoch": span.controller_epoch,
                "isr": _text(span.isr), "isr_size": len(span.isr),
                "replicas": _text(replicas), "replication": len(replicas),
                "preferred": replicas[0] if replicas else None,
                "prev_at_ns": before.begin_ns if before else None,
                "prev_leader": before.leader if before else None,
                "prev_epoch": before.leader_epoch if before else None,
                "prev_controller_epoch": before.controller_epoch if before else None,
                "prev_isr": _text(before.isr) if before else None,
                "prev_isr_size": len(before.isr) if before else None,
                "last_isr": _text(span.isr_before) if before else None,
                "unclean": int(span.unclean),
            }  # fmt: skip


def _replicas_by_version(run: _Run) -> dict[tuple[int, int, int], list[int]]:
    found: dict[tuple[int, int, int], list[int]] = {}
    for row in run.small.states:
        p = run.small.numbers.get((row["topic_id"], row["partition"]))
        if p is not None and row["replicas"]:
            found[p, row["at_ns"], row["version"]] = json.loads(row["replicas"])
    return found


def _absences(run: _Run) -> Iterator[Row]:
    for p, _, spans in run.spans():
        absent: dict[int, Row] = {}
        for span in spans:
            before = span.previous
            for broker in sorted(set(before.isr if before else ()) - set(span.isr)):
                led = int(before is not None and before.leader == broker)
                absent[broker] = {"p": p, "broker": broker, "left_ns": span.begin_ns, "led": led}
                absent[broker] |= {"left_epoch": before.leader_epoch if before else None}
            for broker in sorted(set(span.isr) & absent.keys()):
                end = {"back_ns": span.begin_ns, "back_epoch": span.leader_epoch}
                yield absent.pop(broker) | end | {"back_leader": span.leader}
        for row in absent.values():
            yield row | dict.fromkeys(("back_ns", "back_epoch", "back_leader"))


def _presences(run: _Run) -> Iterator[Row]:
    since: dict[int, int] = {}
    for row in run.changes(_BROKERS):
        name = row["path"].removeprefix(_BROKERS)
        if not name.isdecimal():
            continue
        broker = int(name)
        if row["version"] != -1:
            since.setdefault(broker, row["at_ns"])
        elif broker in since:
            yield {"broker": broker, "from_ns": since.pop(broker), "until_ns": row["at_ns"]}
    for broker, from_ns in since.items():
        yield {"broker": broker, "from_ns": from_ns, "until_ns": FOREVER_NS}


def _terms(run: _Run) -> Iterator[Row]:
    changes = [row for row in run.changes("/controller") if row["path"] == "/controller"]
    before: Row | None = None
    for row, after in zip_longest(changes, changes[1:]):
        if row["controller"] is None or row["controller"] < 0:
            continue
        term = {"controller": row["controller"], "from_ns": row["at_ns"]}
        term["until_ns"] = after["at_ns"] if after else FOREVER_NS
        yield term | {
            "prev_controller": before["controller"] if before else None,
            "prev_until_ns": before["until_ns"] if before else None,
        }
        before = term


def _moves(run: _Run) -> Iterator[Row]:
    """The partition's replicas grow when a reassignment begins, and shrink when it ends."""
    spans = {p: spans for p, _, spans in run.spans()}
    for p, topic, changes in _replica_changes(run):
        move: Row | None = None
        before: set[int] = set()
        for at_ns, replicas in changes:
            if move is None and before and replicas - before:
                added, removed = replicas - before, before - replicas
                move = {"p": p, "topic": topic, "from_ns": at_ns, "added": _text(sorted(added))}
                if removed:
                    yield move | _end(at_ns, removed)
                    move = None
            elif move is not None and (removed := before - replicas):
                yield move | _end(at_ns, removed)
                move = None
            before = replicas
        if move is not None:
            yield move | _end(_joined_ns(move, spans.get(p, [])), ())


def _end(until_ns: int, removed: Iterable[int]) -> Row:
    return {"until_ns": until_ns, "removed": _text(sorted(removed))}


def _joined_ns(move: Row, spans: Sequence[Span]) -> int:
    """When all added replicas were in the ISR."""
    added = {int(broker) for broker in move["added"].strip(",").split(",")}
    joined = [s.begin_ns for s in spans if s.begin_ns >= move["from_ns"] and added <= set(s.isr)]
    return min(joined, default=FOREVER_NS)


def _replica_changes(run: _Run) -> Iterator[tuple[int, str, list[tuple[int, set[int]]]]]:
    """The replica sets of each partition by its topic's versions."""
    changes: dict[int, list[tuple[int, set[int]]]] = defaultdict(list)
    names: dict[int, str] = {}
    for row in run.changes("/brokers/topics/"):
        if row["partition"] is not None or not row["replicas"]:
            continue
        for partition, replicas in json.loads(row["replicas"]).items():
            p = run.small.numbers.get((row["topic_id"], int(partition)))
            if p is not None:
                names[p] = row["topic"] or ""
                changes[p].append((row["at_ns"], set(replicas)))
    for p, rows in changes.items():
        yield p, names[p], rows


def _coordinators(run: _Run) -> Iterator[Row]:
    """The leaders of the partition that coordinates each group and each transactional id."""
    clients = run.small.clients
    groups = {row["group"] for row in clients if row["group"]}
    groups |= {
        row["group"]
        for table in ("assignments", "commits")
        for row in evidence.rows(run.run_dir, table)
        if row["group"]
    }
    ids = {row["transactional_id"] for row in clients if row["transactional_id"]}
    yield from _leaders_of(run, GROUP, OFFSETS_TOPIC, groups)
    yield from _leaders_of(run, TRANSACTION, TRANSACTIONS_TOPIC, ids)


def _leaders_of(run: _Run, kind: str, topic: str, names: Iterable[str]) -> Iterator[Row]:
    spans = {key[1]: spans for _, key, spans in run.spans() if spans and spans[0].topic == topic}
    for name in sorted(names) if spans else ():
        for span in spans.get(coordinating_partition(name, max(spans) + 1), []):
            if span.leader >= 0 and span.begins_epoch:
                before = span.previous.leader if span.previous else None
                yield {"kind": kind, "name": name, "from_ns": span.begin_ns,
                       "leader": span.leader, "epoch": span.leader_epoch,
                       "prev_leader": before}  # fmt: skip


def _strikes(run: _Run) -> Iterator[Row]:
    for n, fault in enumerate(run.small.faults):
        if not fault["acted"]:
            continue
        end_ns = fault["healed_ns"] or fault["end_ns"] or run.end_ns
        for node in sorted(nodes_of(fault)):
            yield {
                "n": n, "fault": fault["fault"], "node": node,
                "effects": _text(sorted(effects_of(fault))),
                "broker": node_id(node) if BROKER.fullmatch(node) else None,
                "begin_ns": fault["begin_ns"], "healing_ns": fault["end_ns"] or end_ns,
                "end_ns": end_ns,
            }  # fmt: skip


def _epoch_starts(run: _Run) -> Iterator[Row]:
    for p, _ in run.numbered_partitions():
        for log in run.small.logs.get(p, []):
            for epoch, start in json.loads(log["epochs"] or "{}").items():
                yield {"p": p, "broker": log["broker"], "epoch": int(epoch), "start": start,
                       "log_start": log["log_start"], "log_end": log["log_end"]}  # fmt: skip


def _views(run: _Run) -> Iterator[Row]:
    names = {topic.name: topic.topic_id for topic in run.facts.topics}
    for row in view_rows(run.run_dir, run.small.numbers, names, run.begin_ns):
        if row["at_ns"] < run.end_ns:
            yield row


_TABLES = {
    "load_span": _load_span,
    "versions": _versions,
    "absences": _absences,
    "presences": _presences,
    "terms": _terms,
    "moves": _moves,
    "coordinators": _coordinators,
    "strikes": _strikes,
    "epoch_starts": _epoch_starts,
    "views": _views,
    "places": _places,
}
