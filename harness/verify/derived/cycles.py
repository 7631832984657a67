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
from itertools import chain, pairwise
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
    intervals,
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
    order = [alive[txn] for txn in sorted(alive)]
    graph = _graph(run_dir, order, numbers)
    edges = [{"kind": kind, "edges": len(getattr(graph, kind))} for kind in KINDS]
    described: dict[tuple[Node, ...], Row] = {}
    cycles = []
    for kind, cycle, (p, off) in _cycles(_edges_against_time(graph, order)):
        nodes = tuple(cycle)
        if nodes not in described:
            described[nodes] = _description([order[node] for node in nodes])
        cycles.append({"kind": kind, "p": p, "off": off, **described[nodes]})
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
    graph, read = Graph(), dict[tuple[Node, int], int]()
    for p, partition_writes in sorted(writes.items()):
        partition_writes.sort()
        for (_, before), (offset, after) in pairwise(partition_writes):
            if before != after:
                graph.ww.setdefault((before, after), (p, offset))
    for txn, partition, offset, value_id in _rows(run_dir, "reads"):
        reader = nodes.get(txn)
        if reader is None or partition not in numbers:
            continue
        p = numbers[partition]
        if offset >= read.get((reader, p), -1):
            read[reader, p] = offset
        writer = wrote.get(value_id)
        if writer is not None and writer != reader:
            seen = graph.early if hasty and txn[:2] in hasty else graph.wr
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
    places: dict[str, tuple[tuple[str, int], int]] = {}
    if not unplaced:
        return places
    value_ids = pa.array(unplaced, pa.string())
    columns = ["client", "session", "topic_id", "partition", "offset", "value_id"]
    for part in evidence.files(run_dir, "reads"):
        for batch in pq.ParquetFile(part).iter_batches(columns=columns):
            rows = batch.filter(pc.is_in(batch["value_id"], value_ids))
            for client, session, topic, number, offset, value_id in zip(
                *(evidence.column_values(rows[name]) for name in columns), strict=True
            ):
                if offset is None:
                    continue
                fate = txns[unplaced[value_id]]["fate"]
                if fate == "committed" or (client, session) not in hasty:
                    place = (topic, number), offset
                    places[value_id] = min(place, places.get(value_id, place))
    return places


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
    for p, reads in sorted(by_partition.items()):
        left = deque(writes.get(p, ()))
        for last, reader in sorted(reads):
            while left and left[0][0] <= last:
                left.popleft()
            following = next(
                ((o, next_reader) for o, next_reader in left if next_reader != reader), None
            )
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
            cells = [evidence.column_values(rows[name]) for name in columns]
            txns, partitions = (zip(*of, strict=True) for of in (cells[:3], cells[3:5]))
            yield from zip(txns, partitions, *cells[5:], strict=True)


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
        for n, (group, group_statistics) in enumerate(zip(groups, statistics, strict=True))
        if group_statistics is None
        or not group_statistics.has_null_count
        or group_statistics.null_count < group.num_rows
    ]


def _cycles(graph: Graph) -> Iterator[tuple[str, list[Node], Place]]:
    """Kind, transactions in order, and a place: one cycle for each component of several, for
    `g_single` one for each edge that closes it. An edge is on a cycle only within a component of
    all edges together: the others are left out first."""
    graph = _knots(graph)
    inner = _knots(Graph(ww=graph.ww, early=graph.early, wr=graph.wr)) if graph.rw else graph
    read = inner.early | inner.wr
    for kind, edges, closing in (
        ("g0", inner.ww, inner.ww),
        ("g1c", inner.wr, inner.wr),
        ("g1c uncommitted", read, inner.early),
        ("g1c with writes", inner.ww | read, read),
    ):
        if not closing:
            continue
        after = successors(edges)
        component, reported = components(after), set[int]()
        for left, right in sorted(closing):
            number = component[left]
            if number == component[right] and number not in reported:
                reported.add(number)
                way = [right, left]
                if left not in after[right]:
                    way, _ = path(after, right, left, component, number.__eq__)
                yield kind, [left, *way], closing[left, right]
    yield from _read_skews(graph)


def _edges_against_time(graph: Graph, txns: Sequence[Row]) -> Graph:
    """The edges among transactions that an edge against their order in time spans."""
    in_time = sorted(range(len(txns)), key=lambda node: int(txns[node]["begin_ns"]))
    return _within(graph, intervals(_all_edges(graph), in_time))


def _knots(graph: Graph) -> Graph:
    """The edges within a strongly connected component of all of them together."""
    return _within(graph, components(successors(_all_edges(graph))))


def _all_edges(graph: Graph) -> Iterator[Edge]:
    """The edges of every kind; one of several kinds comes several times."""
    return chain(graph.ww, graph.early, graph.wr, graph.rw)


def _within(graph: Graph, part: Mapping[Node, int] | Sequence[int]) -> Graph:
    """The edges both of whose nodes are in the same part."""
    return Graph(
        **{
            kind: {
                (left, right): place
                for (left, right), place in getattr(graph, kind).items()
                if part[left] == part[right]
            }
            for kind in KINDS
        }
    )


def _read_skews(graph: Graph) -> Iterator[tuple[str, list[Node], Place]]:
    """One pass over the graph finds the edges that close a cycle; the shortest paths are searched
    as long as `VISITED` permits."""
    tried = sorted(graph.rw)[:TRIED]
    if not tried:
        return
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


def _description(cycle: list[Row]) -> Row:
    """Extent and text of a cycle of transactions; the first of them is the last one, too."""
    return {
        "at_ns": min([txn["begin_ns"] for txn in cycle]),
        "until_ns": max([txn["end_ns"] or txn["begin_ns"] for txn in cycle]),
        "n": len(cycle) - 1,
        "txns": " -> ".join(_shortened_names(cycle)),
    }


def _shortened_names(cycle: list[Row]) -> list[str]:
    names = [f"{txn['client']}/{txn['txn']}" for txn in cycle]
    if len(names) <= SHOWN:
        return names
    half = SHOWN // 2
    return [*names[:half], f"({len(names) - SHOWN} more)", *names[-half:]]
