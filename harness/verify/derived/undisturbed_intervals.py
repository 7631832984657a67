"""Undisturbed intervals of readers and groups, and the records that they received in them.

An undisturbed interval belongs to a reader or group and one partition: no fault acted, and no
member of the group joined, left, paused or resumed. In it a group may stand still for twice the
time that it waits for a dead member, because a second member may die while the group waits for the
first. The polls that a client journalled show that it was alive; without them nothing is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from urteil.chaos.effects import Effect
from urteil.harness.clients.options import MembershipOptions
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.fault_effects import OF_CLIENTS, has_any, has_only
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval, undisturbed_between
from urteil.harness.verify.derived.small_evidence import Key, SmallEvidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC
from urteil.harness.verify.limits import FOREVER_NS

S = 1_000_000_000
TICK_NS = S // 5
ROWS = 131_072
MOMENTARY = OF_CLIENTS - {Effect.CHANGES_MEMBERS}
"""Effects of faults that disturb a group only when they begin and when they are healed."""
FINAL = "final reader"
BOUNDS_NS = {"consumer": 20 * S, FINAL: 30 * S}
"""The time in which a reader without a group may receive nothing; for groups see `group_bound_ns`.
"""
SLACK_NS = 10 * S

_COLUMNS = "client session topic_id partition complete_ns outcome position_after"
Session = tuple[str, int]


@dataclass(slots=True)
class _Polls:
    """One session's polls by TICK_NS: their times, and the positions that it reached in each
    partition."""

    polls: list[int] = field(default_factory=list)
    positions: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    session: Session
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A single reader or a group; `slots` are the partitions that it must receive."""

    name: str
    kind: str
    clients: Sequence[_Client]
    slots: frozenset[int]
    bound_ns: int
    stall_ns: int
    committed: Mapping[int, int]
    commits: Sequence[tuple[int, bool]]


def undisturbed_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """Rows of the table, empty for an imported run: it does not contain what its clients should
    read.

    `reached` is the highest position that the unit was at or committed by the interval's end.
    `progressed` is 1 if the unit received anything in the interval, `recent_progress` if it did in
    the last `bound_ns`. `commit_attempts` and `successful_commits` count its commits in that time.
    `polled` is 1 if all of its clients that should poll did so in the second half of that time.
    """
    if facts.runtime == IMPORTED:
        return []
    units = _units(run_dir, small, scenario, facts)
    polls_of = polls_by_session(
        run_dir, {client.session for unit in units for client in unit.clients}, small.numbers
    )
    rows: list[Row] = []
    for unit in units:
        for p in sorted(unit.slots):
            for interval in _intervals(unit, p, small):
                rows.append({"n": len(rows)} | _row(unit, p, interval, polls_of, small.faults))
    return rows


def end_of_load_ns(facts: RunFacts) -> int:
    """The time until which clients were not disturbed: the final reads move leadership."""
    ends = [phase.begin_ns for phase in facts.phases if phase.name == "final"]
    return min(ends or [max((phase.end_ns for phase in facts.phases), default=0)])


def _units(run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts) -> list[_Unit]:
    """The readers of uncommitted records, and in a run without transactions all readers."""
    limit_ns = end_of_load_ns(facts)
    end_ns = max((phase.end_ns for phase in facts.phases), default=0)
    killed = {op["subject"]: op["complete_ns"] for op in small.ops if op["act"] == "kill client"}
    in_transactions = evidence.row_count(run_dir, "txns") > 0
    assigned_topics = _assigned_topics(run_dir)
    known: dict[tuple[str, str], list[_Client]] = defaultdict(list)
    for row in small.clients:
        if row["kind"] not in ("group", "consumer", "final") or row["begin_ns"] is None:
            continue
        if row["isolation"] == "read_committed" and in_transactions:
            continue
        last_ns = end_ns if row["kind"] == "final" else limit_ns
        ends = (row["end_ns"], killed.get(row["client"]), last_ns)
        known[_unit_of(row, assigned_topics)].append(
            _Client(
                session=(row["client"], row["session"]),
                begin_ns=row["begin_ns"],
                end_ns=min(end for end in ends if end is not None),
            )
        )
    run_partitions = frozenset(
        p for key, p in small.numbers.items() if key[0] in small.topics and key not in small.deleted
    )
    read_partitions = _partitions_read(run_dir, small.numbers)
    commits = _highest_commits(run_dir, small.numbers) if known else {}
    attempts = _commit_attempts(run_dir) if known else {}
    stall_ns = MembershipOptions.of(scenario.workload).max_poll_interval_ms * 1_000_000
    return [
        _Unit(
            name=name,
            kind=kind,
            clients=clients,
            slots=_slots(kind, run_partitions, assigned_topics[name], read_partitions[name], small),
            bound_ns=BOUNDS_NS.get(kind) or group_bound_ns(scenario),
            stall_ns=stall_ns if kind == "group" else 0,
            committed=commits.get(name, {}),
            commits=attempts.get(name, ()),
        )
        for (kind, name), clients in sorted(known.items())
    ]


def _slots(
    kind: str,
    run_partitions: frozenset[int],
    assigned_topics: set[str],
    read_partitions: set[int],
    small: SmallEvidence,
) -> frozenset[int]:
    """The partitions that a unit must receive. A final reader without any pass must read all."""
    if kind == "group":
        return _partitions_of_topics(run_partitions, assigned_topics, small)
    return (
        run_partitions
        if kind == FINAL and not read_partitions
        else run_partitions & read_partitions
    )


def group_bound_ns(scenario: Scenario) -> int:
    """The time in which a group may stand still: one dead member after the other."""
    return 2 * session_timeout_ns(scenario) + SLACK_NS


def session_timeout_ns(scenario: Scenario) -> int:
    return MembershipOptions.of(scenario.workload).session_timeout_ms * 1_000_000


def _partitions_read(run_dir: Path, numbers: Mapping[Key, int]) -> dict[str, set[int]]:
    """Partitions by the client that reads them."""
    partitions: dict[str, set[int]] = defaultdict(set)
    for row in evidence.rows(run_dir, "passes"):
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None:
            partitions[row["client"]].add(p)
    return partitions


def _unit_of(client: Row, assigned_topics: Mapping[str, set[str]]) -> tuple[str, str]:
    """Kind and name of a client's unit: a group with members, or a reader that chose its
    partitions."""
    if client["kind"] == "final":
        return FINAL, str(client["client"])
    joined = client["kind"] == "group" or client["group"] in assigned_topics
    if joined and client["group"] is not None:
        return "group", str(client["group"])
    return "consumer", str(client["client"])


def _assigned_topics(run_dir: Path) -> dict[str, set[str]]:
    """The topics of all assignments of each group."""
    topics: dict[str, set[str]] = defaultdict(set)
    for row in evidence.rows(run_dir, "assignments"):
        topics[row["group"]].add(row["topic_id"])
    return topics


def _partitions_of_topics(
    run_partitions: frozenset[int], assigned_topics: set[str], small: SmallEvidence
) -> frozenset[int]:
    """The partitions that a group must receive: all of the topics of which it was assigned any, or
    of all topics if it was assigned none."""
    if not assigned_topics:
        return run_partitions
    return frozenset(
        p for key, p in small.numbers.items() if p in run_partitions and key[0] in assigned_topics
    )


def _highest_commits(run_dir: Path, numbers: Mapping[Key, int]) -> dict[str, dict[int, int]]:
    """The highest position that may have been committed, by group and partition."""
    commits: dict[str, dict[int, int]] = defaultdict(dict)
    for row in evidence.rows(run_dir, "commits"):
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None and row["outcome"] != "fail" and row["offset"] is not None:
            known = commits[row["group"]]
            known[p] = max(known.get(p, 0), row["offset"])
    return commits


def _commit_attempts(run_dir: Path) -> dict[str, list[tuple[int, bool]]]:
    """The times at which members of a group committed, and whether each commit succeeded."""
    attempts: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for row in evidence.rows(run_dir, "commits"):
        if row["invoke_ns"] is not None:
            attempts[row["group"]].append((row["invoke_ns"], row["outcome"] == "ok"))
    return attempts


def polls_by_session(
    run_dir: Path, clients: set[Session], numbers: Mapping[Key, int]
) -> dict[Session, _Polls]:
    """The polls of these sessions. Reads the table in batches, so that memory does not grow with
    the number of polls."""
    polls_of: dict[Session, _Polls] = defaultdict(_Polls)
    names = pa.array(sorted({client for client, _ in clients if client is not None}), pa.string())
    files = evidence.files(run_dir, "polls") if clients else []
    for part in files:
        for batch in evidence.batches(part, _COLUMNS.split(), ROWS):
            own_polls = batch.filter(pc.is_in(batch["client"].cast(pa.string()), names))
            _add_polls(polls_of, own_polls, numbers)
    return polls_of


def _add_polls(
    polls_of: dict[Session, _Polls], batch: pa.RecordBatch, numbers: Mapping[Key, int]
) -> None:
    table = pa.Table.from_batches([batch])
    table = table.filter(pc.and_(pc.is_valid(table["complete_ns"]), pc.is_valid(table["session"])))
    ticks = pc.divide(table["complete_ns"].cast(pa.int64()), TICK_NS)
    keys = ["client", "session", "topic_id", "partition", "tick"]
    counted = table.append_column("tick", ticks).group_by(keys)
    polls = counted.aggregate([("complete_ns", "max"), ("position_after", "max")])
    for row in polls.to_pylist():
        session_polls = polls_of[row["client"], row["session"]]
        session_polls.polls.append(row["complete_ns_max"])
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None and row["position_after_max"] is not None:
            session_polls.positions[p].append((row["complete_ns_max"], row["position_after_max"]))


def _intervals(unit: _Unit, p: int, small: SmallEvidence) -> list[Interval]:
    """The intervals between two disturbances of the unit or the partition."""
    begin_ns = min(client.begin_ns for client in unit.clients)
    end_ns = max(client.end_ns for client in unit.clients)
    disturbed = [*_faults(small.faults), *_leaderless_intervals(small.spans.get(p, ()))]
    for client in unit.clients:
        disturbed += [Interval(at_ns, at_ns) for at_ns in (client.begin_ns, client.end_ns)]
    if unit.kind == "group":
        for spans in small.spans.values():
            disturbed += [
                interval
                for interval in _leaderless_intervals(spans)
                if spans[0].topic == OFFSETS_TOPIC
            ]
    return undisturbed_between(disturbed, begin_ns, end_ns)


def _faults(faults: Iterable[Row]) -> list[Interval]:
    intervals = []
    for fault in faults:
        acted = acting_interval(fault)
        if has_only(fault, MOMENTARY):
            intervals += [Interval(at_ns, at_ns) for at_ns in (acted.begin_ns, acted.end_ns)]
        elif has_any(fault, {Effect.SETS_QUOTAS}):
            intervals.append(Interval(acted.begin_ns, FOREVER_NS))
        else:
            intervals.append(acted)
    return intervals


def _leaderless_intervals(spans: Iterable[Span]) -> list[Interval]:
    """The times without a leader, which other guarantees judge. Each change of leader is a
    moment."""
    return [
        Interval(span.begin_ns, span.end_ns if span.leader < 0 else span.begin_ns)
        for span in spans
        if span.leader < 0 or span.begins_epoch
    ]


def _row(
    unit: _Unit,
    p: int,
    interval: Interval,
    polls_of: Mapping[Session, _Polls],
    faults: Iterable[Row],
) -> Row:
    positions = [
        pair
        for client in unit.clients
        if client.session in polls_of
        for pair in polls_of[client.session].positions.get(p, ())
        if pair[0] <= interval.end_ns
    ]
    asleep = _disturbed_clients(interval, faults)
    bound_ns = unit.bound_ns + (unit.stall_ns if any(asleep.values()) else 0)
    last_ns = max((at_ns for at_ns, _ in positions), default=-FOREVER_NS)
    reached = max((position for _, position in positions), default=0)
    late_ns = interval.end_ns - bound_ns
    recent_commits = [ok for at_ns, ok in unit.commits if late_ns < at_ns <= interval.end_ns]
    return {
        "name": unit.name,
        "kind": unit.kind,
        "p": p,
        "from_ns": interval.begin_ns,
        "to_ns": interval.end_ns,
        "bound_ns": bound_ns,
        "reached": max(reached, unit.committed.get(p, 0)),
        "progressed": int(last_ns >= interval.begin_ns),
        "recent_progress": int(last_ns > late_ns),
        "commit_attempts": len(recent_commits),
        "successful_commits": sum(recent_commits),
        "polled": int(_polled_throughout(unit, interval, bound_ns // 2, polls_of, asleep)),
    }


def _disturbed_clients(interval: Interval, faults: Iterable[Row]) -> dict[str, bool]:
    """Clients on which a fault acts throughout the interval, and whether it only stops their
    polls."""
    return {
        target: has_any(fault, {Effect.STOPS_POLLS})
        for fault in faults
        if has_only(fault, MOMENTARY) and acting_interval(fault).meets(interval)
        for target in targets_of(fault)
    }


def _polled_throughout(
    unit: _Unit,
    interval: Interval,
    within_ns: int,
    polls_of: Mapping[Session, _Polls],
    asleep: Mapping[str, bool],
) -> bool:
    """Whether the clients that lived from begin to end, undisturbed, polled until the end."""
    there = [
        client.session
        for client in unit.clients
        if client.begin_ns <= interval.begin_ns
        and interval.end_ns <= client.end_ns
        and client.session[0] not in asleep
    ]
    since_ns = interval.end_ns - within_ns
    return bool(there) and all(
        session in polls_of
        and any(since_ns < at_ns <= interval.end_ns for at_ns in polls_of[session].polls)
        for session in there
    )
