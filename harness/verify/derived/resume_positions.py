"""The offsets at which members of groups began to read the partitions that they were assigned.

A member that is assigned a partition fetches the committed position and reads from there: its first
record is at that position, or a higher one. `seek` and `reset` move the position, unless they came
before the assignment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from urteil.harness.verify import evidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS

ROWS = 131_072
MOVED = ("seek", "reset")
_MEMBER = ["client", "session", "topic_id", "partition"]
_KEYS = [*_MEMBER, "generation"]
Member = tuple[str, int, str, int]
"""Client, session, topic id, partition."""
MovedMember = tuple[str, int, str | None, int | None]
"""The same; topic id and partition are None where a move concerns all partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """A member's first read of a partition in a generation, after its assignment."""

    group: str
    member: Member
    assigned_ns: int
    read_ns: int
    offset: int


def resumed_members(run_dir: Path) -> Iterator[Resumption]:
    """All resumptions whose generation is known, in order of the read."""
    assignments = _first_assignments(run_dir)
    firsts = _first_reads(run_dir, {member[0] for member, _ in assignments})
    moved = (
        _position_moves(run_dir)
        if firsts
        else defaultdict[MovedMember, list[tuple[int, int]]](list)
    )
    for key, (poll, read_ns, offset) in sorted(firsts.items(), key=lambda entry: entry[1][1]):
        assigned = assignments.get(key)
        if assigned is None or assigned["at_ns"] > read_ns:
            continue
        moves = [*moved[key[0]], *moved[(*key[0][:2], None, None)]]
        if any(at <= poll and moved_ns >= assigned["at_ns"] for at, moved_ns in moves):
            continue
        yield Resumption(
            group=assigned["group"],
            member=key[0],
            assigned_ns=assigned["at_ns"],
            read_ns=read_ns,
            offset=offset,
        )


def _first_assignments(run_dir: Path) -> dict[tuple[Member, int], Row]:
    """The first assignment of each member in each generation."""
    assignments: dict[tuple[Member, int], Row] = {}
    for row in evidence.rows(run_dir, "assignments"):
        required = (row["at_ns"], row["generation"], row["group"], row["client"])
        if row["event"] != "assigned" or None in required:
            continue
        key = (row["client"], row["session"], row["topic_id"], row["partition"]), row["generation"]
        before = assignments.setdefault(key, row)
        if row["at_ns"] < before["at_ns"]:
            assignments[key] = row
    return assignments


def _first_reads(
    run_dir: Path, clients: set[str]
) -> dict[tuple[Member, int], tuple[int, int, int]]:
    """Poll, time and offset of each member's first read in a generation. Reads the table in
    batches."""
    reads: dict[tuple[Member, int], tuple[int, int, int]] = {}
    names = pa.array(sorted(clients), pa.string())
    columns = [*_KEYS, "poll", "position_in_poll", "read_ns", "offset"]
    for batch in _batches(run_dir, "reads", columns) if clients else ():
        rows = pa.Table.from_batches([batch.filter(pc.is_in(batch["client"], names))])
        known = pc.add(pc.add(rows["generation"], rows["offset"]), rows["read_ns"])
        rows = rows.filter(pc.is_valid(known))
        for name in ("poll", "position_in_poll"):
            rows = _lowest(rows, name)
        for row in rows.to_pylist():
            member = row["client"], row["session"], row["topic_id"], row["partition"]
            first_read = row["poll"], row["read_ns"], row["offset"]
            key = member, row["generation"]
            reads[key] = min(first_read, reads.get(key, first_read))
    return reads


def _lowest(rows: pa.Table, name: str) -> pa.Table:
    """The rows of each member and generation that have its lowest `name`."""
    lows = rows.group_by(_KEYS).aggregate([(name, "min")]).rename_columns([*_KEYS, name])
    return rows.join(lows, [*_KEYS, name], join_type="inner")


def _position_moves(run_dir: Path) -> Mapping[MovedMember, list[tuple[int, int]]]:
    """The polls at which a member's position was moved, and their times. A move without a partition
    concerns all partitions."""
    moves: dict[MovedMember, list[tuple[int, int]]] = defaultdict(list)
    for batch in _batches(run_dir, "polls", [*_MEMBER, "poll", "event", "complete_ns"]):
        for row in batch.filter(pc.is_in(batch["event"], pa.array(MOVED))).to_pylist():
            place = row["topic_id"], row["partition"]
            member = row["client"], row["session"], *((None, None) if None in place else place)
            at_ns = FOREVER_NS if row["complete_ns"] is None else row["complete_ns"]
            moves[member].append((row["poll"], at_ns))
    return moves


def _batches(run_dir: Path, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    for part in evidence.files(run_dir, table):
        yield from evidence.batches(part, columns, ROWS)
