"""Reference checks: what a guarantee means, in plain Python over small histories.

A guarantee's SQL must run over any number of rows on two engines, so its meaning is hard to read in
it. The reference check says the same simply: everything is compared with everything. Both share no
code. `tests/harness/verify/test_references.py` generates histories, damages them at random, and
requires both to find the same violations; the simulation judges by the reference checks alone.

A reference check is added in the file of its guarantee:

1. Write `_reference(history)` below the SQL. It yields one `Violation` for each row that the SQL
   selects, permitted or not: excuses are not part of it. `Partition.violation` makes one. Without a
   sub-kind it stands for any covered one. Its docstring says what it leaves out.
2. Name it in the declaration: `reference=_reference`, and the sub-kinds that it finds in
   `reference_covers` if these are not all. Rows of other sub-kinds are not compared. What else
   differs by design is excluded by a condition on the SQL's row in `reference_leaves_out`.
3. Run `pytest tests/harness/verify/test_references.py`. The test requires a violation of every
   covered sub-kind among its histories. Where there is none, add a change to
   `tests/harness/verify/histories/changes.py`, a damage, or a scene of its own
   (`tests/harness/verify/scenes`).

A guarantee for which it makes no sense gives the reason in `no_reference`: one of both is required.

Rows are those of the evidence (docs/reference/evidence.md). Every partition has the log of its
final leader, and no topic was recreated.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple


class MissingColumn(KeyError, AttributeError):
    """A row of evidence has no such column."""


class Row(dict[str, Any]):
    """A row of evidence: `row.offset` is `row["offset"]`. Raises MissingColumn."""

    __slots__ = ()
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    else:
        __getattr__ = dict.__getitem__

    def __missing__(self, name: str) -> Any:
        raise MissingColumn(f"the row has no column {name}: {dict(self)}")


class Violation(NamedTuple):
    """What is violated how, and where. `sub_kind` is None where the check does not distinguish."""

    sub_kind: str | None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    value_id: str | None = None
    subject: str | None = None
    """What distinguishes violations of one place (`Guarantee.reference_subject`)."""


_FOREVER_NS = 1 << 62

Place = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass(kw_only=True)
class SmallHistory:
    """The evidence of a small run, each table as a list of rows, with views that checks share."""

    settings: Mapping[str, Mapping[str, str]]
    """Topic to its settings."""
    ends_ns: int = 0
    """When the run ended."""
    clients: list[Row] = field(default_factory=list)
    sends: list[Row] = field(default_factory=list)
    reads: list[Row] = field(default_factory=list)
    passes: list[Row] = field(default_factory=list)
    polls: list[Row] = field(default_factory=list)
    txns: list[Row] = field(default_factory=list)
    commits: list[Row] = field(default_factory=list)
    commit_reads: list[Row] = field(default_factory=list)
    assignments: list[Row] = field(default_factory=list)
    deliveries: list[Row] = field(default_factory=list)
    offset_answers: list[Row] = field(default_factory=list)
    metadata_logs: list[Row] = field(default_factory=list)
    votes: list[Row] = field(default_factory=list)
    states: list[Row] = field(default_factory=list)
    logs: list[Row] = field(default_factory=list)
    replicas: list[Row] = field(default_factory=list)
    indexes: list[Row] = field(default_factory=list)
    faults: list[Row] = field(default_factory=list)
    accesses: list[Row] = field(default_factory=list)
    admin_ops: list[Row] = field(default_factory=list)
    outputs: list[Row] = field(default_factory=list)
    derived: Mapping[str, list[Row]] = field(default_factory=dict)
    """Derived tables: what plain Python made of settings, faults and other small evidence
    (derived/tables.py), and `expected_outputs`."""

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Iterable[Mapping[str, Any]]],
        settings: Mapping[str, Mapping[str, str]],
        ends_ns: int = 0,
        derived: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    ) -> SmallHistory:
        """The history of tables of evidence; others than those named here are left out."""
        names = {field.name for field in fields(cls)} - {"settings", "ends_ns", "derived"}
        rows = {name: [Row(row) for row in tables[name]] for name in names & tables.keys()}
        more = {name: [Row(row) for row in some] for name, some in (derived or {}).items()}
        return cls(settings=settings, ends_ns=ends_ns, derived=more, **rows)

    def derived_rows(self, table: str) -> list[Row]:
        """The rows of a derived table."""
        return self.derived.get(table, [])

    @cached_property
    def made_of(self) -> Mapping[tuple[str, int], list[Row]]:
        """Derived table and partition number to its rows."""
        tables = self.derived.items()
        return _lists(((name, row.p), row) for name, rows in tables for row in rows if "p" in row)

    @cached_property
    def parts_at(self) -> dict[tuple[str, int], Row]:
        """Topic and partition to the row of the derived table `partitions`."""
        return {(row.topic, row.partition): row for row in self.derived_rows("partitions")}

    @cached_property
    def partition_by_p(self) -> dict[int, Partition]:
        """Partition number of derived tables to the partition."""
        at = self.partition_at
        return {row.p: at[place] for place, row in self.parts_at.items() if place in at}

    @cached_property
    def deliveries_of(self) -> Mapping[tuple[str, str, int, int], list[Row]]:
        """Share group, topic, partition and offset to the record's deliveries."""
        return _lists(
            ((row.group, row.topic, row.partition, row.offset), row) for row in self.deliveries
        )

    @cached_property
    def share_at(self) -> dict[tuple[str, str, int], Row]:
        """Share group, topic and partition to the row of the derived table `share_partitions`."""
        places = {row.p: place for place, row in self.parts_at.items()}
        return {
            (row.grp, *places[row.p]): row for row in self.derived_rows("share_partitions")
            if row.p in places
        }  # fmt: skip

    @cached_property
    def polls_of(self) -> Mapping[tuple[str, int], list[Row]]:
        """Client and session to its polls."""
        return _lists(((row.client, row.session), row) for row in self.polls)

    @cached_property
    def assignments_of(self) -> Mapping[tuple[str, int], list[Row]]:
        """Client and session to its assignments."""
        return _lists(((row.client, row.session), row) for row in self.assignments)

    @cached_property
    def registrations(self) -> list[Row]:
        """The versions of brokers' registrations in ZooKeeper."""
        return [row for row in self.states if row.path.startswith("/brokers/ids/")]

    @cached_property
    def run_settings(self) -> Row:
        """The one row of the derived table `settings`."""
        return next(iter(self.derived_rows("settings")), Row())

    @cached_property
    def partitions(self) -> list[Partition]:
        """Every partition that a row names, in order."""
        partitions: dict[tuple[str, int], Partition] = {}
        for name in _PLACED:
            for row in getattr(self, name):
                place = (row.topic, chosen_partition(row) if name == "sends" else row.partition)
                if None not in place:
                    if place not in partitions:
                        partitions[place] = Partition(self, *place)
                    getattr(partitions[place], name).append(row)
        return [partitions[place] for place in sorted(partitions)]

    @cached_property
    def partition_at(self) -> dict[tuple[str, int], Partition]:
        return {(partition.topic, partition.partition): partition for partition in self.partitions}

    def partition_of(self, send: Row) -> Partition:
        """The partition that a producer chose."""
        return self.partition_at[send.topic, chosen_partition(send)]

    @cached_property
    def sends_by_value(self) -> dict[str, Row]:
        return {send.value_id: send for send in self.sends}

    @cached_property
    def reads_of(self) -> Mapping[str, list[Row]]:
        """Value to the reads of it, by place."""
        return _by_value(self.reads)

    @cached_property
    def copies_of(self) -> Mapping[str, list[Row]]:
        """Value to the records with it on all disks, by place."""
        return _by_value(self.replicas)

    @cached_property
    def outputs_of(self) -> Mapping[str, list[Row]]:
        """Value to the sends of the lab's copiers that were made of it."""
        return _lists((send.source, send) for send in self.sends if send.source is not None)

    def seen_places(self, value_id: str) -> list[Place]:
        """Where a value was read or lies on a disk, in order."""
        return places_of(self.reads_of[value_id] + self.copies_of[value_id])

    @cached_property
    def records_of(self) -> Mapping[str, list[Row]]:
        """Value to the records with it in the logs of final leaders, by place."""
        return _by_value(row for partition in self.partitions for row in partition.log)

    @cached_property
    def final_reads_of(self) -> Mapping[str, list[Row]]:
        """Value to the reads of it in complete final passes, by place."""
        return _by_value(row for partition in self.partitions for each in partition.final_passes
                         for row in each.reads)  # fmt: skip

    @cached_property
    def readers_of_committed(self) -> set[tuple[str, int]]:
        """Client and session of each reader of committed records."""
        return {(row.client, row.session) for row in self.clients
                if row.isolation == "read_committed"}  # fmt: skip

    @cached_property
    def assignments_in(self) -> Mapping[str, list[Row]]:
        """Group to the assignments of its members."""
        return _lists((row.group, row) for row in self.assignments)

    @cached_property
    def instance_of(self) -> dict[tuple[str, int], str]:
        """Client and session of each static member to its instance."""
        return {(row.client, row.session): row.instance for row in self.clients if row.instance}

    def members_of(self, group: str) -> set[tuple[str, int]]:
        """Client and session of each member: it names the group, was assigned something or
        committed in it."""
        return {(row.client, row.session) for row in self._memberships[group]}

    @cached_property
    def _memberships(self) -> Mapping[str, list[Row]]:
        rows = (*self.clients, *self.assignments, *self.commits)
        return _lists((row.group, row) for row in rows)

    def sends_in(self, txn: Row) -> list[Row]:
        """The sends of a transaction."""
        return self._sends_by_txn.get((txn.client, txn.session, txn.txn), [])

    @cached_property
    def _sends_by_txn(self) -> Mapping[Any, list[Row]]:
        return _lists(((send.client, send.session, send.txn), send) for send in self.sends)

    def fate_of(self, send: Row) -> str | None:
        """What became of a send's transaction: `committed`, `aborted` (no commit was requested), or
        `unknown`; None without a transaction."""
        txn = self.txn_of.get((send.client, send.session, send.txn))
        if txn is None:
            return None
        if txn.outcome == "committed":
            return "committed"
        return "aborted" if txn.commit_invoke_ns is None else "unknown"

    def places_of_send(self, send: Row) -> set[Place]:
        """Where a send's record was acknowledged, read or lies on a disk."""
        places = set(self.seen_places(send.value_id))
        offset = acknowledged_offset(send)
        return places if offset is None else places | {(send.topic, send.partition, offset)}

    def committed_passes_over(self, send: Row) -> dict[Place, list[FinalPass]]:
        """Each place of a send's record, with the final passes of readers of committed records over
        it, if there are any."""
        passes_by_place = {}
        for topic, partition, at in self.places_of_send(send):
            passes = self.partition_at[topic, partition].final_passes
            passes_by_place[topic, partition, at] = [
                final_pass
                for final_pass in passes
                if final_pass.covers(at) and final_pass.row.isolation == "read_committed"
            ]
        return {place: passes for place, passes in passes_by_place.items() if passes}

    def may_end_late(self, send: Row) -> bool:
        """Whether the end of an earlier transaction may have ended the send's own."""
        txn = self.txn_of.get((send.client, send.session, send.txn))
        return txn is not None and txn.late_end_ns is not None

    @cached_property
    def txn_of(self) -> dict[tuple[str, int, int], Row]:
        """Client, session and number to the transaction."""
        return {(row.client, row.session, row.txn): row for row in self.txns}


_PLACED = (
    *("sends", "reads", "polls", "passes", "states", "logs", "replicas", "offset_answers"),
    *("commits", "commit_reads", "indexes"),
)
"""The tables whose rows belong to a partition, and that `Partition` has."""


@dataclass
class Partition:
    """The rows of one partition, and what they say of it."""

    history: SmallHistory
    topic: str
    partition: int
    sends: list[Row] = field(default_factory=list)
    """By the partition that the producer chose."""
    reads: list[Row] = field(default_factory=list)
    polls: list[Row] = field(default_factory=list)
    passes: list[Row] = field(default_factory=list)
    states: list[Row] = field(default_factory=list)
    logs: list[Row] = field(default_factory=list)
    replicas: list[Row] = field(default_factory=list)
    offset_answers: list[Row] = field(default_factory=list)
    commits: list[Row] = field(default_factory=list)
    commit_reads: list[Row] = field(default_factory=list)
    indexes: list[Row] = field(default_factory=list)

    @cached_property
    def part(self) -> Row:
        """Its row of the derived table `partitions`."""
        return self.history.parts_at[self.topic, self.partition]

    def derived_rows(self, table: str) -> list[Row]:
        """Its rows of a derived table."""
        return self.history.made_of.get((table, self.part.p), [])

    @property
    def settings(self) -> Mapping[str, str]:
        return self.history.settings.get(self.topic, {})

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.settings.get("cleanup.policy", "delete")

    @cached_property
    def versions(self) -> list[Row]:
        """The versions of its state in the order of the metadata plane."""
        return sorted((row for row in self.states if row.leader_epoch is not None),
                      key=lambda row: row.zxid)  # fmt: skip

    @cached_property
    def reigns(self) -> list[tuple[Row, int]]:
        """Each version of its state, with the time of the next one."""
        states = sorted(self.states, key=lambda row: row.zxid)
        ends = [*(row.at_ns for row in states[1:]), _FOREVER_NS]
        return [
            state_and_end
            for state_and_end in zip(states, ends, strict=True)
            if state_and_end[0].leader_epoch is not None
        ]

    @cached_property
    def final_leader(self) -> int | None:
        return next((row.leader for row in reversed(self.versions) if row.leader >= 0), None)

    @cached_property
    def final_isr(self) -> list[int]:
        isr = next((row.isr for row in reversed(self.versions) if row.leader >= 0), "[]")
        return list(json.loads(isr))

    @cached_property
    def leader_log(self) -> Row:
        """The final leader's row of `logs`."""
        return next(row for row in self.logs if row.broker == self.final_leader)

    @property
    def start(self) -> int:
        """Where the final leader's log starts."""
        return int(self.leader_log.log_start or 0)

    @property
    def committed_end(self) -> int:
        """The offset below which all is committed: the end that a final pass had to reach, or the
        final leader's high watermark."""
        ends = [final_pass.row.to_offset for final_pass in self.final_passes]
        return int(max([*ends, self.leader_log.high_watermark or 0]))

    @staticmethod
    def epochs_of(log: Row) -> dict[int, int]:
        """Leader epoch to its first offset, as a log's checkpoint has it."""
        return {int(epoch): int(at) for epoch, at in json.loads(log.epochs or "{}").items()}

    def log_of(self, broker: int | None) -> list[Row]:
        """The records and markers on a broker's disk by offset, at one offset markers last."""
        rows = (row for row in self.replicas if row.broker == broker)
        return sorted(rows, key=lambda row: (row.offset, row.control is not None,
                                             row.producer_epoch or 0, row.sequence or 0,
                                             row.value_id or ""))  # fmt: skip

    @cached_property
    def log(self) -> list[Row]:
        """The final leader's log."""
        return self.log_of(self.final_leader)

    @cached_property
    def log_slots(self) -> set[tuple[int, str | None]]:
        """Offset and value of each record in the final leader's log."""
        return {(row.offset, row.value_id) for row in self.log}

    @cached_property
    def due_records(self) -> set[tuple[int, str]]:
        """Offset and value of each record that every reader must receive: those in no transaction,
        and acknowledged ones of transactions that were committed."""
        due_rows = set()
        for row in self.log:
            send = self.history.sends_by_value.get(row.value_id)
            is_committed = (
                send is not None
                and send.outcome == "ok"
                and self.history.fate_of(send) == "committed"
                and not self.history.may_end_late(send)
                and len(places_of(self.history.records_of[row.value_id])) == 1
            )
            if (
                row.value_id is not None
                and not row.control
                and (is_committed or not row.transactional)
            ):
                due_rows.add((row.offset, row.value_id))
        return due_rows

    @cached_property
    def copies_at(self) -> Mapping[int, list[Row]]:
        """Offset to the records and markers there on all disks."""
        copies: dict[int, list[Row]] = {}
        for row in self.replicas:
            copies.setdefault(row.offset, []).append(row)
        return copies

    @cached_property
    def final_passes(self) -> list[FinalPass]:
        """The final passes that reached their end."""
        return [
            FinalPass(row, [read for read in self.reads if _is_of(read, row)])
            for row in self.passes
            if row.final and row.complete
        ]

    def is_transactional(self, offset: int, value_id: str | None) -> bool:
        """Whether the record is in a transaction, by the final leader's copy, else by any."""
        there = self.copies_at.get(offset, [])
        copies = [row for row in there if row.value_id == value_id]
        led = [row for row in copies if row.broker == self.final_leader]
        return any(row.transactional or row.control for row in led or copies)

    def owing_passes(self, offset: int, value_id: str | None) -> list[FinalPass]:
        """The final passes over an offset that must deliver the record there: readers of committed
        records need not deliver what is in a transaction, or beyond all logs."""
        over = [final_pass for final_pass in self.final_passes if final_pass.covers(offset)]
        others = [final_pass for final_pass in over if final_pass.row.isolation != "read_committed"]
        is_logged = any((row.log_start or 0) <= offset < row.log_end for row in self.logs)
        if self.is_transactional(offset, value_id) or (others and not is_logged):
            return others
        return over

    def violation(
        self,
        sub_kind: str | None,
        offset: int | None = None,
        value_id: str | None = None,
        *subject: object,
    ) -> Violation:
        about = subject_text(*subject) if subject else None
        return Violation(sub_kind, self.topic, self.partition, offset, value_id, about)


@dataclass(frozen=True)
class FinalPass:
    """A complete final pass over a partition, and what it delivered."""

    row: Row
    reads: list[Row]

    def covers(self, offset: int) -> bool:
        return bool(self.row.from_offset <= offset < self.row.to_offset)

    def has_delivered(self, offset: int, value_id: str | None) -> bool:
        return (offset, value_id) in self.slots

    @cached_property
    def slots(self) -> set[tuple[int, str | None]]:
        """Offset and value of each record that it delivered."""
        return {(read.offset, read.value_id) for read in self.reads}


Reference = Callable[[SmallHistory], Iterator[Violation]]


def chosen_partition(send: Row) -> Any:
    """The partition that the producer chose, else the one that it was to choose."""
    return send.partition_intended if send.partition is None else send.partition


def acknowledged_offset(send: Row) -> int | None:
    """The offset of an acknowledgement; None without one."""
    known = send.outcome == "ok" and send.offset is not None and send.offset >= 0
    return int(send.offset) if known else None


def subject_text(*components: object) -> str:
    """The subject of a violation, as CONCAT_WS('/', ...) makes it: without unknown parts."""
    return "/".join(str(part) for part in components if part is not None)


def is_number(value: int | None) -> bool:
    """Whether a generation, an epoch or an offset is known: -1 stands for none, as null does."""
    return value is not None and value >= 0


def place_of(row: Row) -> Place:
    return row.topic, row.partition, row.offset


def places_of(rows: Iterable[Row]) -> list[Place]:
    """The different places of rows, in order."""
    return sorted({place_of(row) for row in rows})


class _Lists(dict[str, list[Row]]):
    """Lists by value; empty for values that are none of them."""

    def __missing__(self, value: str) -> list[Row]:
        return []


def _is_of(read: Row, row: Row) -> bool:
    return (read.client, read.session, read["pass"]) == (row.client, row.session, row["pass"])


def _lists(pairs: Iterable[tuple[Any, Row]]) -> Mapping[Any, list[Row]]:
    rows_by_key: dict[Any, list[Row]] = defaultdict(list)
    for key, row in pairs:
        rows_by_key[key].append(row)
    return rows_by_key


def _by_value(rows: Iterable[Row]) -> Mapping[str, list[Row]]:
    sends_by_value = _Lists()
    for row in rows:
        if row.value_id is not None:
            sends_by_value.setdefault(row.value_id, []).append(row)
    for same in sends_by_value.values():
        same.sort(key=place_of)
    return sends_by_value
