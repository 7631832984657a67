"""Cycles of dependencies among transactions: rows of the derived tables `cycles` and `graph`.

There are three kinds of edges, reduced to the next neighbour:
- `ww`: the next record of another transaction in a partition.
- `wr`: a transaction read what another one wrote. It is `early` if the reader reads uncommitted
  records: the other transaction may have committed later.
- `rw`: the first record of another transaction behind the last one that a transaction read.

A record whose send has no offset, or no known outcome, lies where readers received it. Aborted
transactions are left out. Source: Adya, Liskov, O'Neil, Generalized Isolation Level Definitions
(2000).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.verify import evidence
from urteil.harness.verify.derived.digraph import (
    Edge,
    Node,
    components,
    path,
    reachable_ends,
    successors,
)
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.part_cache import once_a_version_of_any_size

Txn = tuple[str, int, int]
"""Client, session, number. A node of the graph is its place among all sorted transactions."""
Place = tuple[int, int]
UNCOMMITTED = "read_uncommitted"
TRIED = 4_000
"""So many `rw` edges are tried for a path back, in the order of their transactions."""
REPORTED = 500
"""So many read skews are reported at most."""
VISITED = 100_000
"""The search for the paths of read skews ends at so many visits of transactions."""
SHOWN = 40
"""A longer cycle is shown by its first and last transactions."""


KINDS = ("ww", "wr", "early", "rw")


@dataclass(slots=True)
class Graph:
    """Edges by kind: from, to, and a place in a log that shows the edge."""

    ww: dict[Edge, Place] = field(default_factory=dict)
    early: dict[Edge, Place] = field(default_factory=dict)
    wr: dict[Edge, Place] = field(default_factory=dict)
    rw: dict[Edge, Place] = field(default_factory=dict)


def cycle_rows(
    run_dir: Path, txns: Iterable[Row], numbers: Mapping[tuple[str, int], int]
) -> tuple[list[Row], list[Row]]:
    """Rows of `cycles`, and of `graph`: how many edges of each kind there are."""
    alive = {_transaction_of(txn): txn for txn in txns if txn["fate"] != "aborted"}
    if not alive:
        return [], []
    order = sorted(alive)
    graph = _graph(run_dir, [alive[txn] for txn in order], numbers)
    edges = [{"kind": kind, "edges": len(getattr(graph, kind))} for kind in KINDS]
    cycles = [
        _row(kind, [order[node] for node in cycle], place, alive)
        for kind, cycle, place in _cycles(graph)
    ]
    return cycles, edges


def _transaction_of(row: Row) -> Txn:
    return row["client"], row["session"], row["txn"]


def _graph(run_dir: Path, txns: Sequence[Row], numbers: Mapping[tuple[str, int], int]) -> Graph:
    nodes = {_transaction_of(txn): node for node, txn in enumerate(txns)}
    writes: dict[int, list[tuple[int, Node]]] = defaultdict(list)
    wrote: dict[str, Node] = {}
    unplaced: dict[str, Node] = {}
    for txn, partition, offset, value_id, outcome in _rows(run_dir, "sends", "outcome"):
        node = nodes.get(txn)
        if node is not None and outcome != "fail":
            wrote[value_id] = node
            if outcome != "ok" or offset is None:
                unplaced[value_id] = node
            elif partition in numbers:
                writes[numbers[partition]].append((offset, node))
    hasty = _uncommitted_sessions(run_dir)
    for value_id, (partition, offset) in _places(run_dir, unplaced, txns, hasty).items():
        if partition in numbers:
            writes[numbers[partition]].append((offset, unplaced[value_id]))
    graph, read = Graph(), defaultdict[tuple[Node, int], int](lambda: -1)
    for p, ones in sorted(writes.items()):
        ones.sort()
        for (_, before), (offset, after) in pairwise(ones):
            if before != after:
                graph.ww.setdefault((before, after), (p, offset))
    for txn, partition, offset, value_id in _rows(run_dir, "reads"):
        reader = nodes.get(txn)
        if reader is None or partition not in numbers:
            continue
        p = numbers[partition]
        read[reader, p] = max(read[reader, p], offset)
        writer = wrote.get(value_id)
        if writer is not None and writer != reader:
            seen = graph.early if txn[:2] in hasty else graph.wr
            seen.setdefault((writer, reader), (p, offset))
    _add_reads_before_writes(graph, writes, read)
    return graph


def _places(
    run_dir: Path,
    unplaced: Mapping[str, Node],
    txns: Sequence[Row],
    hasty: Set[tuple[str, int]],
) -> dict[str, tuple[tuple[str, int], int]]:
    """Partition and first offset at which readers received these values. Of a transaction of
    unknown end, a reader of uncommitted records may have received what was aborted later."""
    found: dict[str, tuple[tuple[str, int], int]] = {}
    if not unplaced:
        return found
    wanted = pa.array(unplaced, pa.string())
    columns = ["client", "session", "topic_id", "partition", "offset", "value_id"]
    for part in evidence.files(run_dir, "reads"):
        for batch in pq.ParquetFile(part).iter_batches(columns=columns):
            rows = batch.filter(pc.is_in(batch["value_id"], wanted))
            for client, session, topic, number, offset, value_id in zip(
                *(rows[name].to_pylist() for name in columns), strict=True
            ):
                if offset is None:
                    continue
                fate = txns[unplaced[value_id]]["fate"]
                if fate == "committed" or (client, session) not in hasty:
                    place = (topic, number), offset
                    found[value_id] = min(place, found.get(value_id, place))
    return found


def _uncommitted_sessions(run_dir: Path) -> set[tuple[str, int]]:
    """Sessions that say that they read uncommitted records."""
    rows = evidence.rows(run_dir, "clients")
    return {(row["client"], row["session"]) for row in rows if row["isolation"] == UNCOMMITTED}


def _add_reads_before_writes(
    graph: Graph, writes: dict[int, list[tuple[int, Node]]], read: Mapping[tuple[Node, int], int]
) -> None:
    by_partition: dict[int, list[tuple[int, Node]]] = defaultdict(list)
    for (reader, p), last in read.items():
        by_partition[p].append((last, reader))
    for p, ones in sorted(by_partition.items()):
        left = deque(writes.get(p, ()))
        for last, reader in sorted(ones):
            while left and left[0][0] <= last:
                left.popleft()
            following = next(((o, one) for o, one in left if one != reader), None)
            if following is not None:
                graph.rw.setdefault((reader, following[1]), (p, following[0]))


def _rows(run_dir: Path, table: str, *more: str) -> Iterator[tuple[Any, ...]]:
    """Transaction, partition, offset, value and `more` of the rows within transactions.

    Read piece by piece: memory does not follow a part's length.
    """
    columns = ["client", "session", "txn", "topic_id", "partition", "offset", "value_id", *more]
    for part in evidence.files(run_dir, table):
        if not (groups := _transactional_row_groups(part)):
            continue
        for batch in pq.ParquetFile(part).iter_batches(row_groups=groups, columns=columns):
            rows = batch.filter(batch["txn"].is_valid())
            for row in zip(*(rows[name].to_pylist() for name in columns), strict=True):
                yield row[:3], row[3:5], *row[5:]


@once_a_version_of_any_size
def _transactional_row_groups(part: Path) -> list[int]:
    """The row groups that may have rows within transactions, by their statistics."""
    metadata = evidence.footer(part)
    if "txn" not in metadata.schema.names:
        return []
    column = metadata.schema.names.index("txn")
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    statistics = [group.column(column).statistics for group in groups]
    return [
        n
        for n, (group, one) in enumerate(zip(groups, statistics, strict=True))
        if one is None or not one.has_null_count or one.null_count < group.num_rows
    ]


def _cycles(graph: Graph) -> Iterator[tuple[str, list[Node], Place]]:
    """Kind, transactions in order, and a place: one cycle for each component of several, for
    `g_single` one for each edge that closes it. An edge is on a cycle only within a component of
    all edges together: the others are left out first."""
    graph = _knots(graph)
    inner = _knots(Graph(ww=graph.ww, early=graph.early, wr=graph.wr))
    read = inner.early | inner.wr
    for kind, edges, closing in (
        ("g0", inner.ww, inner.ww),
        ("g1c", inner.wr, inner.wr),
        ("g1c uncommitted", read, inner.early),
        ("g1c with writes", inner.ww | read, read),
    ):
        after = successors(edges)
        component, reported = components(after), set[int]()
        for (left, right), place in sorted(closing.items()):
            number = component[left]
            if number == component[right] and number not in reported:
                reported.add(number)
                way, _ = path(after, right, left, component, number.__eq__)
                yield kind, [left, *way], place
    yield from _read_skews(graph)


def _knots(graph: Graph) -> Graph:
    """The edges within a strongly connected component of all of them together."""
    knot = components(successors({*graph.ww, *graph.early, *graph.wr, *graph.rw}))
    return Graph(
        **{
            kind: {
                edge: place
                for edge, place in getattr(graph, kind).items()
                if knot[edge[0]] == knot[edge[1]]
            }
            for kind in KINDS
        }
    )


def _read_skews(graph: Graph) -> Iterator[tuple[str, list[Node], Place]]:
    """One pass over the graph finds the edges that close a cycle; the shortest paths are searched
    as long as `VISITED` permits."""
    tried = sorted(graph.rw)[:TRIED]
    after = successors({*graph.ww, *graph.early, *graph.wr})
    leads = reachable_ends(after, components(after), [left for left, _ in tried])
    reported = visited = 0
    for n, (left, right) in enumerate(tried):
        bit = 1 << n
        if not leads.get(right, 0) & bit:
            continue
        way, seen = path(after, right, left, leads, bit.__and__)
        reported, visited = reported + 1, visited + seen
        yield "g_single", [left, *way], graph.rw[left, right]
        if reported == REPORTED or visited > VISITED:
            return


def _row(kind: str, cycle: list[Txn], place: Place, alive: Mapping[Txn, Row]) -> Row:
    members = list(dict.fromkeys(cycle))
    rows = [alive[one] for one in members]
    return {
        "kind": kind,
        "p": place[0],
        "off": place[1],
        "at_ns": min(row["begin_ns"] for row in rows),
        "until_ns": max(row["end_ns"] or row["begin_ns"] for row in rows),
        "n": len(members),
        "txns": " -> ".join(_shortened_names(cycle)),
    }


def _shortened_names(cycle: list[Txn]) -> list[str]:
    names = [f"{client}/{txn}" for client, _, txn in cycle]
    if len(names) <= SHOWN:
        return names
    half = SHOWN // 2
    return [*names[:half], f"({len(names) - SHOWN} more)", *names[-half:]]
