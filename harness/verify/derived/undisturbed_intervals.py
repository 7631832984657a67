"""Undisturbed intervals of readers and groups, and what they received in them.

An undisturbed interval belongs to a reader or group and one partition: no fault acted, and no
member of the group joined, left, paused or resumed. In it a group may stand still for twice the
time that it waits for a dead member: a second member may die of the wait for the first. The polls
that a client journalled show that it lived; without them nothing is held against the cluster.
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
from urteil.harness.verify.derived.impact import Stretch, acting_stretch
from urteil.harness.verify.derived.small_evidence import Key, SmallEvidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC
from urteil.harness.verify.limits import FOREVER_NS

S = 1_000_000_000
TICK_NS = S // 5
ROWS = 131_072
MOMENTARY = OF_CLIENTS - {Effect.CHANGES_MEMBERS}
"""Effects of faults that disturb a group when they begin and when they are healed."""
FINAL = "final reader"
BOUNDS_NS = {"consumer": 20 * S, FINAL: 30 * S}
"""How long a reader without a group may receive nothing; a group, as long as its sessions last."""
SLACK_NS = 10 * S

_COLUMNS = "client session topic_id partition complete_ns outcome position_after"
Who = tuple[str, int]


@dataclass(slots=True)
class _Beats:
    """One client's polls by TICK_NS: when it polled at all, and how far it was brought where."""

    polls: list[int] = field(default_factory=list)
    given: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    who: Who
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A reader of its own, or a group; `slots` are the partitions that it is to be given."""

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
    """Rows of the table, empty for an imported run: it does not say what its clients should read.

    `reached` is the highest position that the unit was at or committed by the interval's end.
    `moved` says whether the unit received anything in the interval, `lately` whether it did in the
    last `bound_ns`. `tried` and `committed` count its commits in that time. `live` says whether all
    of its clients that should poll did so in the second half of that time.
    """
    if facts.runtime == IMPORTED:
        return []
    units = _units(run_dir, small, scenario, facts)
    beats = beats_of(
        run_dir, {client.who for unit in units for client in unit.clients}, small.numbers
    )
    rows: list[Row] = []
    for unit in units:
        for p in sorted(unit.slots):
            for calm in _stretches(unit, p, small):
                rows.append({"n": len(rows)} | _row(unit, p, calm, beats, small.faults))
    return rows


def end_of_load_ns(facts: RunFacts) -> int:
    """Until when clients were left alone: the final reads make others lead."""
    ends = [phase.begin_ns for phase in facts.phases if phase.name == "final"]
    return min(ends or [max((phase.end_ns for phase in facts.phases), default=0)])


def _units(run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts) -> list[_Unit]:
    """Those that read uncommitted records; in a run without transactions all."""
    limit_ns = end_of_load_ns(facts)
    over_ns = max((phase.end_ns for phase in facts.phases), default=0)
    killed = {op["subject"]: op["complete_ns"] for op in small.ops if op["act"] == "kill client"}
    in_transactions = evidence.row_count(run_dir, "txns") > 0
    given = _assigned_topics(run_dir)
    known: dict[tuple[str, str], list[_Client]] = defaultdict(list)
    for row in small.clients:
        if row["kind"] not in ("group", "consumer", "final") or row["begin_ns"] is None:
            continue
        if row["isolation"] == "read_committed" and in_transactions:
            continue
        last_ns = over_ns if row["kind"] == "final" else limit_ns
        ends = (row["end_ns"], killed.get(row["client"]), last_ns)
        known[_unit_of(row, given)].append(
            _Client(
                who=(row["client"], row["session"]),
                begin_ns=row["begin_ns"],
                end_ns=min(end for end in ends if end is not None),
            )
        )
    ours = frozenset(
        p for key, p in small.numbers.items() if key[0] in small.topics and key not in small.gone
    )
    swept = _partitions_read(run_dir, small.numbers)
    commits = _highest_commits(run_dir, small.numbers) if known else {}
    tries = _tries(run_dir) if known else {}
    stall_ns = MembershipOptions.of(scenario.workload).max_poll_interval_ms * 1_000_000
    return [
        _Unit(
            name=name,
            kind=kind,
            clients=clients,
            slots=_slots(kind, ours, given[name], swept[name], small),
            bound_ns=BOUNDS_NS.get(kind) or group_bound_ns(scenario),
            stall_ns=stall_ns if kind == "group" else 0,
            committed=commits.get(name, {}),
            commits=tries.get(name, ()),
        )
        for (kind, name), clients in sorted(known.items())
    ]


def _slots(
    kind: str, ours: frozenset[int], given: set[str], swept: set[int], small: SmallEvidence
) -> frozenset[int]:
    """A final reader that could begin nowhere was to read all."""
    if kind == "group":
        return _of_topics(ours, given, small)
    return ours if kind == FINAL and not swept else ours & swept


def group_bound_ns(scenario: Scenario) -> int:
    """How long a group may stand still: one dead member after the other."""
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


def _unit_of(client: Row, given: Mapping[str, set[str]]) -> tuple[str, str]:
    """Kind and name: a group that somebody joined, or a reader that chose its partitions."""
    if client["kind"] == "final":
        return FINAL, str(client["client"])
    joined = client["kind"] == "group" or client["group"] in given
    if joined and client["group"] is not None:
        return "group", str(client["group"])
    return "consumer", str(client["client"])


def _assigned_topics(run_dir: Path) -> dict[str, set[str]]:
    """Topics by the group that was ever assigned something of them."""
    topics: dict[str, set[str]] = defaultdict(set)
    for row in evidence.rows(run_dir, "assignments"):
        topics[row["group"]].add(row["topic_id"])
    return topics


def _of_topics(ours: frozenset[int], given: set[str], small: SmallEvidence) -> frozenset[int]:
    """What a group is to be given: all of the topics of which it was given something, or of all
    where it was given nothing at all."""
    if not given:
        return ours
    return frozenset(p for key, p in small.numbers.items() if p in ours and key[0] in given)


def _highest_commits(run_dir: Path, numbers: Mapping[Key, int]) -> dict[str, dict[int, int]]:
    """The highest position by group that anybody may have committed."""
    commits: dict[str, dict[int, int]] = defaultdict(dict)
    for row in evidence.rows(run_dir, "commits"):
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None and row["outcome"] != "fail" and row["offset"] is not None:
            known = commits[row["group"]]
            known[p] = max(known.get(p, 0), row["offset"])
    return commits


def _tries(run_dir: Path) -> dict[str, list[tuple[int, bool]]]:
    """When members of a group tried to commit, and whether that succeeded."""
    tries: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for row in evidence.rows(run_dir, "commits"):
        if row["invoke_ns"] is not None:
            tries[row["group"]].append((row["invoke_ns"], row["outcome"] == "ok"))
    return tries


def beats_of(run_dir: Path, clients: set[Who], numbers: Mapping[Key, int]) -> dict[Who, _Beats]:
    """Read piece by piece: memory does not follow the number of polls."""
    beats: dict[Who, _Beats] = defaultdict(_Beats)
    names = pa.array(sorted({client for client, _ in clients if client is not None}), pa.string())
    files = evidence.files(run_dir, "polls") if clients else []
    for part in files:
        for batch in evidence.batches(part, _COLUMNS.split(), ROWS):
            mine = batch.filter(pc.is_in(batch["client"].cast(pa.string()), names))
            _take(beats, mine, numbers)
    return beats


def _take(
    beats_by_client: dict[Who, _Beats], batch: pa.RecordBatch, numbers: Mapping[Key, int]
) -> None:
    table = pa.Table.from_batches([batch])
    table = table.filter(pc.and_(pc.is_valid(table["complete_ns"]), pc.is_valid(table["session"])))
    ticks = pc.divide(table["complete_ns"].cast(pa.int64()), TICK_NS)
    keys = ["client", "session", "topic_id", "partition", "tick"]
    counted = table.append_column("tick", ticks).group_by(keys)
    polls = counted.aggregate([("complete_ns", "max"), ("position_after", "max")])
    for row in polls.to_pylist():
        beats = beats_by_client[row["client"], row["session"]]
        beats.polls.append(row["complete_ns_max"])
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None and row["position_after_max"] is not None:
            beats.given[p].append((row["complete_ns_max"], row["position_after_max"]))


def _stretches(unit: _Unit, p: int, small: SmallEvidence) -> list[Stretch]:
    """From one disturbance of the unit or the partition to the next."""
    begin_ns = min(client.begin_ns for client in unit.clients)
    end_ns = max(client.end_ns for client in unit.clients)
    disturbed = [*_faults(small.faults), *_headless(small.spans.get(p, ()))]
    for client in unit.clients:
        disturbed += [Stretch(at_ns, at_ns) for at_ns in (client.begin_ns, client.end_ns)]
    if unit.kind == "group":
        for spans in small.spans.values():
            disturbed += [
                stretch for stretch in _headless(spans) if spans[0].topic == OFFSETS_TOPIC
            ]
    return undisturbed_between(disturbed, begin_ns, end_ns)


def _faults(faults: Iterable[Row]) -> list[Stretch]:
    stretches = []
    for fault in faults:
        acted = acting_stretch(fault)
        if has_only(fault, MOMENTARY):
            stretches += [Stretch(at_ns, at_ns) for at_ns in (acted.begin_ns, acted.end_ns)]
        elif has_any(fault, {Effect.SETS_QUOTAS}):
            stretches.append(Stretch(acted.begin_ns, FOREVER_NS))
        else:
            stretches.append(acted)
    return stretches


def _headless(spans: Iterable[Span]) -> list[Stretch]:
    """When nobody led: what is to be said of that, other guarantees say. Each change of leader is
    a moment of its own."""
    return [
        Stretch(span.begin_ns, span.end_ns if span.leader < 0 else span.begin_ns)
        for span in spans
        if span.leader < 0 or span.begins_epoch
    ]


def undisturbed_between(disturbed: Iterable[Stretch], begin_ns: int, end_ns: int) -> list[Stretch]:
    """What is left of that time."""
    stretches: list[Stretch] = []
    calm_ns = begin_ns
    for stretch in sorted(disturbed, key=lambda stretch: stretch.begin_ns):
        if stretch.begin_ns > calm_ns:
            stretches.append(Stretch(calm_ns, min(stretch.begin_ns, end_ns)))
        calm_ns = max(calm_ns, stretch.end_ns)
        if calm_ns >= end_ns:
            return stretches
    return [*stretches, Stretch(calm_ns, end_ns)]


def _row(
    unit: _Unit, p: int, calm: Stretch, beats: Mapping[Who, _Beats], faults: Iterable[Row]
) -> Row:
    given = [
        pair
        for client in unit.clients
        if client.who in beats
        for pair in beats[client.who].given.get(p, ())
        if pair[0] <= calm.end_ns
    ]
    asleep = _disturbed_clients(calm, faults)
    bound_ns = unit.bound_ns + (unit.stall_ns if any(asleep.values()) else 0)
    last_ns = max((at_ns for at_ns, _ in given), default=-FOREVER_NS)
    reached = max((position for _, position in given), default=0)
    late_ns = calm.end_ns - bound_ns
    tried = [ok for at_ns, ok in unit.commits if late_ns < at_ns <= calm.end_ns]
    return {
        "name": unit.name,
        "kind": unit.kind,
        "p": p,
        "from_ns": calm.begin_ns,
        "to_ns": calm.end_ns,
        "bound_ns": bound_ns,
        "reached": max(reached, unit.committed.get(p, 0)),
        "progressed": int(last_ns >= calm.begin_ns),
        "recent_progress": int(last_ns > late_ns),
        "commit_attempts": len(tried),
        "successful_commits": sum(tried),
        "polled": int(_polled_throughout(unit, calm, bound_ns // 2, beats, asleep)),
    }


def _disturbed_clients(calm: Stretch, faults: Iterable[Row]) -> dict[str, bool]:
    """Clients on which a fault acts all the while, and whether it only stops their polls."""
    return {
        target: has_any(fault, {Effect.STOPS_POLLS})
        for fault in faults
        if has_only(fault, MOMENTARY) and acting_stretch(fault).meets(calm)
        for target in targets_of(fault)
    }


def _polled_throughout(
    unit: _Unit,
    calm: Stretch,
    within_ns: int,
    beats: Mapping[Who, _Beats],
    asleep: Mapping[str, bool],
) -> bool:
    """Whether those who were there from begin to end, and awake, polled to the last."""
    there = [
        client.who
        for client in unit.clients
        if client.begin_ns <= calm.begin_ns
        and calm.end_ns <= client.end_ns
        and client.who[0] not in asleep
    ]
    since_ns = calm.end_ns - within_ns
    return bool(there) and all(
        who in beats and any(since_ns < at_ns <= calm.end_ns for at_ns in beats[who].polls)
        for who in there
    )
