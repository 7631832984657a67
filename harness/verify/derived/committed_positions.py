"""Answers of OffsetFetch that no OffsetCommit explains: rows of the table `commit_breaks`.

There are four kinds of rows:
- `went back`: a position below one that was acknowledged before.
- `register`: an answer that no order of the operations explains.
- `resumed`: a member that was assigned a partition and resumed below a position that had been
  acknowledged before. Commits in transactions are excepted: their markers may follow later.
- `unfollowed`: a register with more possible orders than the search tries. It is not a finding;
  validation/sufficiency.py reports it.

`former_coordinator` is 1 where a former coordinator may have answered before it learned of its
successor. Kafka's coordinators answer OffsetFetch from memory, so such an answer may be old in a
healthy cluster.

Positions expire (`offsets.retention.minutes`, KIP-211) after that time without a commit and without
an assignment to a member of the group. An answer without a position is correct then, and also after
a deletion (`deleted_positions.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

from urteil.harness.scenario import Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.coordinators import Coordinators
from urteil.harness.verify.derived.coverage import propagated_ns
from urteil.harness.verify.derived.deleted_positions import deletions, settled_deletions
from urteil.harness.verify.derived.resume_positions import resumed_members
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS, SECOND_NS
from urteil.harness.verify.linearizability import Op, TooMany, broken_reads

Key = tuple[str, int]
WEEK_MINUTES = "10080"
"""Kafka's default of `offsets.retention.minutes`."""
NOWHERE = -1
"""What OffsetFetch returns, beside null, where no position was committed."""
_COLUMNS = "client session group topic_id partition invoke_ns complete_ns outcome error offset"


@dataclass(slots=True)
class Position:
    """The commits and fetches of one group's position in one partition, by time of invocation.

    `read_rows` are the rows of the answers in `reads`. `joined` are the times at which members of
    the group were assigned any partition.
    """

    writes: list[Op] = field(default_factory=list)
    reads: list[Op] = field(default_factory=list)
    read_rows: list[Row] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)
    in_transactions: bool = False

    def held_ns(self, read: Op) -> int:
        """The time until which the position certainly had not begun to expire before `read`: the
        last acknowledged commit (the first commit, if none was acknowledged) or the last
        assignment."""
        done = (op for op in self.writes if op.complete_ns < read.invoke_ns)
        held = [op.invoke_ns for op in done if op.value is not None]
        held += [op.invoke_ns for op in self.writes[:1]]
        return max([*held, *(at_ns for at_ns in self.joined if at_ns < read.invoke_ns)], default=0)


def commit_break_rows(
    run_dir: Path, derived: Derived, coordinators: Coordinators, scenario: Scenario
) -> list[Row]:
    """Rows of the table `commit_breaks`, by group and partition."""
    rows = []
    positions, expiry_ns = _positions(run_dir, derived), _expiry_ns(scenario)
    for (group, p), deleted in deletions(
        evidence.rows(run_dir, "admin_ops"), _judged_partitions(derived)
    ).items():
        writes = positions[group, p].writes
        writes += settled_deletions(group, list(writes), deleted, coordinators, scenario)
    for (group, p), position in sorted(positions.items()):
        position.writes += [
            Op(expired_ns, read.complete_ns, None)
            for read in position.reads
            if read.value is None
            if (expired_ns := position.held_ns(read) + expiry_ns) <= read.complete_ns
        ]
        row_of_read = dict(zip(position.reads, position.read_rows, strict=True))
        for kind, read, before in _contradicted_commits(position):
            begin_ns, end_ns = read.invoke_ns, int(read.complete_ns)
            rows.append(
                {"kind": kind, "p": p, "grp": group, "at_ns": begin_ns, "until_ns": end_ns}
                | {"answered": read.value, "acknowledged": before}
                | {"former_coordinator": int(coordinators.may_be_former(group, begin_ns, end_ns))}
                | {name: row_of_read[read][name] for name in ("client", "session")}
            )
    below = _resumed_below(run_dir, positions, _judged_partitions(derived), coordinators, expiry_ns)
    return [*rows, *below]


def _expiry_ns(scenario: Scenario) -> int:
    minutes = scenario.cluster.config.get("offsets.retention.minutes", WEEK_MINUTES)
    return int(minutes) * 60 * SECOND_NS


def _resumed_below(
    run_dir: Path,
    positions: dict[Key, Position],
    numbers: dict[Key, int],
    coordinators: Coordinators,
    expiry_ns: int,
) -> Iterator[Row]:
    for resumption in resumed_members(run_dir) if positions else ():
        client, session, topic_id, partition = resumption.member
        p = numbers.get((topic_id, partition))
        position = positions.get((resumption.group, -1 if p is None else p))
        if position is None or position.in_transactions:
            continue
        read = Op(resumption.assigned_ns, resumption.read_ns, resumption.offset, is_read=True)
        if position.held_ns(read) + expiry_ns <= read.complete_ns:
            continue
        before = undercut_position(position.writes, read)
        if before is not None:
            yield (
                {
                    "kind": "resumed",
                    "p": p,
                    "grp": resumption.group,
                    "at_ns": resumption.assigned_ns,
                }
                | {
                    "until_ns": resumption.read_ns,
                    "answered": resumption.offset,
                    "acknowledged": before,
                }
                | {
                    "former_coordinator": int(
                        coordinators.may_be_former(
                            resumption.group, resumption.assigned_ns, resumption.read_ns
                        )
                    )
                }
                | {"client": client, "session": session}
            )


def _judged_partitions(derived: Derived) -> dict[Key, int]:
    """The partitions that are judged. In mirrored topics an application may commit, too
    (`translated_too_far`)."""
    return {
        (part["topic_id"], part["partition"]): part["p"]
        for part in derived.partitions
        if not part["gone"] and not part["copies"]
    }


def _positions(run_dir: Path, derived: Derived) -> dict[Key, Position]:
    """The positions by group and partition. Those of deleted topics are left out: Kafka deletes
    them with the topic."""
    numbers = _judged_partitions(derived)
    positions: dict[Key, Position] = defaultdict(Position)
    joined: dict[str, list[int]] = defaultdict(list)
    for row in evidence.rows(run_dir, "assignments"):
        if row["event"] == "assigned" and row["at_ns"] is not None:
            joined[row["group"]].append(row["at_ns"])
    for table in ("commits", "commit_reads"):
        rows = [row for row in _rows(run_dir, table) if row["invoke_ns"] is not None]
        markers = Markers(rows, derived.faults)
        for row in sorted(rows, key=lambda row: int(row["invoke_ns"])):
            p = numbers.get((row["topic_id"], row["partition"]))
            if p is not None and row["group"] is not None:
                _add(positions[row["group"], p], table, row, markers)
    for (group, _), position in positions.items():
        position.joined = joined[group]
    return positions


def _rows(run_dir: Path, table: str) -> Iterator[Row]:
    columns = _COLUMNS.split() + (["txn"] if table == "commits" else [])
    for part in evidence.files(run_dir, table):
        for batch in evidence.batches(part, columns):
            yield from batch.to_pylist()


class Markers:
    """The time until which the commit marker of a transaction's offsets may be delayed.

    The coordinator writes the marker after it acknowledged the end of the transaction, as soon as
    it reaches the leader of the offsets topic (KIP-98; with KIP-447 OffsetFetch can wait for it).
    It writes it before the same producer's next transaction begins, so the end of that transaction
    is a bound.
    """

    def __init__(self, commits: list[Row], faults: list[Row]) -> None:
        self._faults = faults
        self._next_end: dict[tuple[str, int, int], int] = {}
        ends: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for row in commits:
            if row.get("txn") is not None and _is_done(row):
                ends[row["client"], row["session"]][row["txn"]] = row["complete_ns"]
        for (client, session), end_times in ends.items():
            for txn, after in pairwise(sorted(end_times)):
                self._next_end[client, session, txn] = end_times[after]

    def written_ns(self, row: Row) -> int:
        """The time by which the marker of an acknowledged commit was written."""
        end_ns = int(max(row["complete_ns"], row["invoke_ns"]))
        after_ns = self._next_end.get((row["client"], row["session"], row["txn"]), FOREVER_NS)
        return max(end_ns, min(after_ns, propagated_ns(end_ns, self._faults)))


def _is_done(row: Row) -> bool:
    return row["outcome"] == "ok" and row["complete_ns"] is not None


def _add(position: Position, table: str, row: Row, markers: Markers) -> None:
    """Adds a commit or fetch. A commit with retries may take effect again later: one of its
    attempts may still be in flight."""
    done = _is_done(row)
    end_ns = max(row["complete_ns"], row["invoke_ns"]) if done else math.inf
    if done and row.get("txn") is not None:
        end_ns = markers.written_ns(row)
    if table == "commit_reads":
        if done:
            offset = None if row["offset"] == NOWHERE else row["offset"]
            position.reads.append(Op(row["invoke_ns"], end_ns, offset, is_read=True))
            position.read_rows.append(row)
    elif row["outcome"] != "fail":
        position.in_transactions |= row["txn"] is not None
        position.writes.append(Op(row["invoke_ns"], end_ns, row["offset"]))
        if done and row["error"]:
            position.writes.append(Op(row["invoke_ns"], math.inf, row["offset"]))


def _contradicted_commits(position: Position) -> Iterator[tuple[str, Op, int | None]]:
    """The kind, the answer, and the position that was acknowledged before it."""
    ends = sorted((op.complete_ns, _answer(op)) for op in position.writes if op.is_complete)
    highest = list(accumulate((value for _, value in ends), max))
    times = [end for end, _ in ends]
    for read in position.reads:
        n = bisect_left(times, read.invoke_ns)
        if n and highest[n - 1] > _answer(read):
            before = undercut_position(position.writes, read)
            if before is not None:
                yield "went back", read, before
    try:
        broken = broken_reads([*position.writes, *position.reads])
    except TooMany:
        yield "unfollowed", position.reads[-1], None
        return
    for read in broken:
        n = bisect_left(times, read.invoke_ns)
        yield "register", read, ends[n - 1][1] if n else None


def undercut_position(writes: list[Op], read: Op) -> int | None:
    """The highest position that was acknowledged before `read` and is above its answer, if no
    commit since then, acknowledged or unknown, was as low as that answer."""
    low = [op for op in writes if _answer(op) <= _answer(read)]
    low_ns = max((op.complete_ns for op in low if op.invoke_ns <= read.complete_ns), default=0)
    above = [
        _answer(op)
        for op in writes
        if op.complete_ns < read.invoke_ns and op.invoke_ns > low_ns
        if _answer(op) > _answer(read)
    ]
    return max(above, default=None)


def _answer(op: Op) -> int:
    return -1 if op.value is None else op.value
