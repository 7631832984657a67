"""Isolation anomalies as cycles of dependencies: rows of the tables `cycles` and `graph`.

A cycle of `ww` edges is G0, one of `wr` edges G1c, one with a single `rw` edge G-single, and one
with several G2-item. Two transactions also form a cycle by their positions in single partitions: a
lost update, an intermediate read (G1b) and a fractured read. A cycle of reads and real-time order
(`rt`: the commit of one transaction was acknowledged before the other began) is `g1c realtime`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path

from urteil.harness.verify.derived.dependency_graph import (
    KINDS,
    Graph,
    History,
    Place,
    read_history,
    transaction_of,
)
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

TRIED = 4_000
"""The maximum number of `rw` edges for which a path back is searched, in the order of their
transactions."""
REPORTED = 500
"""The maximum number of reported anomalies of a kind."""
VISITED = 100_000
"""The search for the paths of read skews ends after this number of visits of transactions."""
COMPARED = 1_000_000
"""The maximum number of compared partitions over all pairs of transactions."""
SHOWN = 40
"""The text of a longer cycle contains only its first and last transactions."""
ORDER = "rt"
EDGES = {
    "g0": ("ww",),
    "g1c": ("wr",),
    "g1c uncommitted": ("wr", "early"),
    "g1c with writes": ("wr", "early", "ww"),
    "g_single": ("wr", "early", "ww"),
    "g2_item": ("wr", "early", "ww", "rw"),
}
"""The edges of each kind of cycle. Where two transactions have edges of several kinds, the first
kind in this order counts."""
MISSED = ("g_single", "g2_item")
"""Kinds whose first edge is an `rw` edge."""

Step = tuple[str, Place | None]
"""An edge of a cycle: its kind, and the log position that shows it."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Transactions in order, the first one repeated at the end, and the edges between them."""

    kind: str
    route: Sequence[Node]
    place: Place
    steps: Sequence[Step]


def cycle_rows(
    run_dir: Path,
    txns: Iterable[Row],
    numbers: Mapping[tuple[str, int], int],
    names: Mapping[int, str],
) -> tuple[list[Row], list[Row]]:
    """Rows of `cycles` and of `graph`, which counts the edges of each kind. `numbers` maps each
    partition to its number, `names` each number to the partition's name."""
    by_txn = {transaction_of(txn): txn for txn in txns if txn["fate"] != "aborted"}
    if not by_txn:
        return [], []
    order = [by_txn[txn] for txn in sorted(by_txn)]
    history = read_history(run_dir, order, numbers)
    edges = [{"kind": kind, "edges": len(getattr(history.graph, kind))} for kind in KINDS]
    described: dict[tuple[Node, ...], Row] = {}
    rows = []
    for cycle in _anomalies(history, order):
        nodes = tuple(cycle.route)
        if nodes not in described:
            described[nodes] = _description([order[node] for node in nodes])
        p, off = cycle.place
        steps = {"edges": _steps_text(cycle.steps, names)}
        rows.append({"kind": cycle.kind, "p": p, "off": off, **described[nodes], **steps})
    return rows, edges


def _anomalies(history: History, txns: Sequence[Row]) -> Iterator[Cycle]:
    graph = history.graph
    for kind, route, place in _cycles(_edges_against_time(graph, txns)):
        yield Cycle(kind, route, place, [*_steps(graph, kind, route)])
    yield from _reads_against_time(graph.wr, txns)
    yield from _lost_updates(history)
    yield from _partial_reads(history)


def _steps(graph: Graph, cycle_kind: str, route: Sequence[Node]) -> Iterator[Step]:
    """The edges between the transactions of a cycle."""
    for n, edge in enumerate(pairwise(route)):
        kinds = ("rw",) if n == 0 and cycle_kind in MISSED else EDGES[cycle_kind]
        kind = next(kind for kind in kinds if edge in getattr(graph, kind))
        yield kind, getattr(graph, kind)[edge]


def _cycles(graph: Graph) -> Iterator[tuple[str, list[Node], Place]]:
    """Kind, transactions in order, and log position: one cycle for each strongly connected
    component, and for `g_single` one for each closing edge. Only edges within a component of all
    edges can be part of a cycle, so the others are dropped first."""
    graph = _within_components(graph)
    inner = (
        _within_components(Graph(ww=graph.ww, early=graph.early, wr=graph.wr))
        if graph.rw
        else graph
    )
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
                route = [right, left]
                if left not in after[right]:
                    route, _ = path(after, right, left, component, number.__eq__)
                yield kind, [left, *route], closing[left, right]
    yield from _read_skews(graph)


def _edges_against_time(graph: Graph, txns: Sequence[Row]) -> Graph:
    """The edges within intervals of transactions that an edge against their order in time spans."""
    in_time = sorted(range(len(txns)), key=lambda node: int(txns[node]["begin_ns"]))
    return _within(graph, intervals(_all_edges(graph), in_time))


def _within_components(graph: Graph) -> Graph:
    """The edges within a strongly connected component of all edges together."""
    return _within(graph, components(successors(_all_edges(graph))))


def _all_edges(graph: Graph) -> Iterator[Edge]:
    """The edges of every kind; an edge of several kinds is repeated."""
    return chain(graph.ww, graph.early, graph.wr, graph.rw)


def _within(graph: Graph, part: Mapping[Node, int] | Sequence[int]) -> Graph:
    """The edges whose two nodes have the same number in `part`."""
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
    """`g_single`: an edge that a path without another `rw` edge closes. `g2_item`: one cycle for
    each component that has other edges.

    One pass over the graph finds the edges that close a cycle. The search for the shortest paths
    ends after `VISITED` visits.
    """
    tried = sorted(graph.rw)[:TRIED]
    if not tried:
        return
    after = successors({*graph.ww, *graph.early, *graph.wr})
    leads = reachable_ends(after, components(after), [left for left, _ in tried])
    others = []
    reported = visited = 0
    for n, (left, right) in enumerate(tried):
        bit = 1 << n
        if not leads.get(right, 0) & bit:
            others.append((left, right))
        elif reported < REPORTED and visited <= VISITED:
            route, seen = path(after, right, left, leads, bit.__and__)
            reported, visited = reported + 1, visited + seen
            yield "g_single", [left, *route], graph.rw[left, right]
    yield from _write_skews(graph, others)


def _write_skews(graph: Graph, edges: Sequence[Edge]) -> Iterator[tuple[str, list[Node], Place]]:
    """A cycle of several `rw` edges through each component that has one of these edges."""
    if not edges:
        return
    after = successors({*_all_edges(graph)})
    component, reported = components(after), set[int]()
    for left, right in edges:
        number = component[left]
        if number not in reported and len(reported) < REPORTED:
            reported.add(number)
            route, _ = path(after, right, left, component, number.__eq__)
            yield "g2_item", [left, *route], graph.rw[left, right]


def _reads_against_time(reads: Mapping[Edge, Place], txns: Sequence[Row]) -> Iterator[Cycle]:
    """Cycles of reads of committed records and the order in time.

    A transaction requests its commit after it began and before the commit is acknowledged. So along
    both kinds of edges commits are requested later and later, and only a read of a transaction that
    had not requested its commit closes a cycle. The order in time is a chain of moments: a
    transaction leads to the moment of its end, each moment to the next one, and each moment to the
    transactions that begin then.
    """

    def commit_ns(node: Node) -> int:
        return int(txns[node]["commit_ns"] or txns[node]["begin_ns"])

    part = intervals(reads, sorted(range(len(txns)), key=commit_ns))
    inner = {edge: place for edge, place in reads.items() if part[edge[0]] == part[edge[1]]}
    if not inner:
        return
    sizes: dict[int, int] = defaultdict(int)
    for number in part:
        sizes[number] += 1
    over_time = _moments(txns, [node for node, number in enumerate(part) if sizes[number] > 1])
    after = successors({*inner, *over_time})
    component, reported = components(after), set[int]()
    by_reads = components(successors(inner))
    for left, right in sorted(inner):
        number = component[left]
        is_closed = number == component[right] and by_reads[left] != by_reads[right]
        if is_closed and number not in reported:
            reported.add(number)
            route, _ = path(after, right, left, component, number.__eq__)
            nodes = [left, *(node for node in route if node < len(txns))]
            steps = [("wr", inner[e]) if e in inner else (ORDER, None) for e in pairwise(nodes)]
            yield Cycle("g1c realtime", nodes, inner[left, right], steps)


def _moments(txns: Sequence[Row], nodes: Sequence[Node]) -> Iterator[Edge]:
    """Edges over moments that lead from each committed transaction to those that began after its
    end. The numbers of moments follow those of all transactions."""
    events = [(int(txns[node]["begin_ns"]), 0, node) for node in nodes]
    events += [
        (int(txns[node]["end_ns"]), 1, node)
        for node in nodes
        if txns[node]["outcome"] == "committed" and txns[node]["end_ns"] is not None
    ]
    moment = len(txns)
    for _, is_end, node in sorted(events):
        if not is_end:
            yield moment, node
            continue
        yield node, moment + 1
        yield moment, moment + 1
        moment += 1


def _lost_updates(history: History) -> Iterator[Cycle]:
    """Lost updates: a transaction read a partition up to a position, and appended to it after a
    record of another transaction that it had not read."""
    own_last = {
        (node, p): offset
        for p, writes in history.writes.items()
        for offset, node in writes
        if (node, p) in history.read
    }
    reported = 0
    for (reader, p), appended in sorted(own_last.items()):
        missed = _first_of_others(history.writes[p], history.read[reader, p], reader)
        if missed is not None and missed[0] < appended:
            yield Cycle(
                "lost_update", [reader, missed[1], reader], (p, missed[0]),
                [("rw", (p, missed[0])), ("ww", (p, appended))],
            )  # fmt: skip
            reported += 1
            if reported == REPORTED:
                return


def _first_of_others(
    writes: Sequence[tuple[int, Node]], last: int, own: Node
) -> tuple[int, Node] | None:
    """The first record after an offset that another transaction wrote."""
    for n in range(bisect_right(writes, last, key=itemgetter(0)), len(writes)):
        if writes[n][1] != own:
            return writes[n]
    return None


def _partial_reads(history: History) -> Iterator[Cycle]:
    """Pairs of transactions: the second read a record of the first, and its position in one
    partition is before another record of the first. `g1b` if it has read a record of the first
    there, else `fractured`."""
    written = _extents(history)
    positions: dict[Node, dict[int, int]] = defaultdict(dict)
    for (node, p), last in history.read.items():
        positions[node][p] = last
    counts = dict.fromkeys(("g1b", "fractured"), 0)
    compared = 0
    graph = history.graph
    for (writer, reader), place in chain(graph.wr.items(), graph.early.items()):
        kind_of_read = "wr" if (writer, reader) in graph.wr else "early"
        by_writer, by_reader = written.get(writer, {}), positions[reader]
        compared += min(len(by_writer), len(by_reader))
        if compared > COMPARED or min(counts.values()) == REPORTED:
            return
        for p in sorted(by_writer.keys() & by_reader.keys()):
            first, last = by_writer[p]
            if by_reader[p] < last:
                kind = "g1b" if first <= by_reader[p] else "fractured"
                missed = (p, last if kind == "g1b" else first)
                if counts[kind] < REPORTED:
                    counts[kind] += 1
                    steps = [(kind_of_read, place), ("rw", missed)]
                    yield Cycle(kind, [writer, reader, writer], missed, steps)


def _extents(history: History) -> dict[Node, dict[int, tuple[int, int]]]:
    """The first and the last offset of each transaction in each partition that it wrote to."""
    extents: dict[Node, dict[int, tuple[int, int]]] = defaultdict(dict)
    for p, writes in history.writes.items():
        for offset, node in writes:
            first, _ = extents[node].get(p, (offset, offset))
            extents[node][p] = (first, offset)
    return extents


def _description(cycle: list[Row]) -> Row:
    """The begin, end and text of a cycle of transactions; the first transaction is also the
    last."""
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


def _steps_text(steps: Sequence[Step], names: Mapping[int, str]) -> str:
    """Kind and log position of each edge; empty for a cycle whose names are shortened."""
    if len(steps) >= SHOWN:
        return ""
    return ", ".join(
        kind if place is None else f"{kind} {names.get(place[0], place[0])}@{place[1]}"
        for kind, place in steps
    )
