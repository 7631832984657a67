"""Cycles of transactions are found, by reads alone or by the orders that are possible."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    Tables,
    first_txn,
    judged,
    transactional_tables,
)
from urteil.harness.verify.derived.cycles import KINDS, Graph, _cycles
from urteil.harness.verify.derived.digraph import Edge, Node, components, intervals, successors
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import BATCH


def _reads(tables: Tables, txn: int, offset: int) -> None:
    whose = next(row for row in tables["txns"] if row["txn"] == txn)
    read = next(row for row in tables["reads"] if row["offset"] == offset)
    tables["reads"].append(
        read | {"client": whose["client"], "pass": 900 + txn, "poll": 900 + txn, "txn": txn}
    )


def test_only_mutual_reads_form_a_cycle(tmp_path: Path) -> None:
    tables = transactional_tables()
    _reads(tables, 7, 6 * BATCH)
    result = judged(tmp_path / "one", tables, "g1c", "g0")
    assert result["g1c"].status is Status.HOLDS
    assert result["g0"].status is Status.HOLDS
    _reads(tables, 6, 7 * BATCH)
    (finding, *_) = judged(tmp_path / "both", tables, "g1c")["g1c"].findings
    assert (finding.sub_kind, finding.permitted) == ("g1c", None)


def test_read_uncommitted_readers_may_form_a_cycle(tmp_path: Path) -> None:
    tables = transactional_tables()
    _reads(tables, 7, 6 * BATCH)
    _reads(tables, 6, 7 * BATCH)
    for row in tables["clients"]:
        row["isolation"] = "read_uncommitted"
    (finding, *_) = judged(tmp_path, tables, "g1c")["g1c"].findings
    assert finding.sub_kind == "g1c uncommitted"
    assert finding.permitted == "readers of uncommitted records are promised no more"


def test_aborted_transaction_is_in_no_cycle(tmp_path: Path) -> None:
    tables = transactional_tables()
    aborted = first_txn(tables, "aborted")["txn"]
    _reads(tables, aborted, (aborted - 1) * BATCH)
    _reads(tables, aborted - 1, aborted * BATCH)
    assert judged(tmp_path, tables, "g1c")["g1c"].violations == 0


def test_components_are_strongly_connected_components() -> None:
    nodes = {name: number for number, name in enumerate("abcdef")}
    edges = {"a": "b", "b": "c", "c": "ad", "d": "e", "e": "d", "f": "a"}
    after = {nodes[node]: [nodes[other] for other in others] for node, others in edges.items()}
    component_of = components(after)
    assert component_of[nodes["a"]] == component_of[nodes["b"]] == component_of[nodes["c"]]
    assert component_of[nodes["d"]] == component_of[nodes["e"]] != component_of[nodes["a"]]
    assert component_of[nodes["f"]] not in (component_of[nodes["a"]], component_of[nodes["d"]])


def _graph(edges: dict[str, list[tuple[int, int]]]) -> Graph:
    return Graph(
        **{
            kind: {edge: (0, n) for n, edge in enumerate(of_kind)}
            for kind, of_kind in edges.items()
        }
    )


def _distances(edges: Iterable[Edge], begin: Node) -> dict[Node, int]:
    """How many edges each reachable transaction is away, in plain Python."""
    distance, frontier, ones = {begin: 0}, [begin], list(edges)
    while frontier:
        following = {right for left, right in ones if left in frontier} - distance.keys()
        distance |= dict.fromkeys(following, distance[frontier[0]] + 1)
        frontier = list(following)
    return distance


EDGES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda e: e[0] != e[1]),
    unique=True, max_size=25,
)  # fmt: skip


@given(st.fixed_dictionaries({kind: EDGES for kind in KINDS}))
def test_read_skews_are_the_rw_edges_that_other_edges_close(
    edges: dict[str, list[tuple[int, int]]],
) -> None:
    graph = _graph(edges)
    either = graph.ww | graph.early | graph.wr
    shortest = {
        (left, right): _distances(either, right)[left] + 2
        for left, right in graph.rw
        if left in _distances(either, right)
    }
    cycles = [cycle for kind, cycle, _ in _cycles(graph) if kind == "g_single"]
    assert {(cycle[0], cycle[1]): len(cycle) for cycle in cycles} == shortest
    assert len(cycles) == len(shortest)
    for cycle in cycles:
        assert all(edge in either for edge in pairwise(cycle[1:]))


@given(EDGES, st.permutations(range(10)))
def test_each_component_is_within_one_interval_of_any_order(
    edges: list[Edge], order: list[Node]
) -> None:
    part, component = intervals(edges, order), components(successors(edges))
    for (node, its), (other, others) in pairwise(sorted(component.items(), key=lambda at: at[1])):
        assert its != others or part[node] == part[other]


def test_intervals_end_where_no_edge_goes_back() -> None:
    assert len(set(intervals(chain(9), range(10)))) == 10
    assert len(set(intervals([*chain(9), (3, 1), (5, 3), (9, 8)], range(10)))) == 5


def chain(size: int) -> list[tuple[int, int]]:
    return [(n, n + 1) for n in range(size)]


SHAPES: dict[str, Callable[[int], dict[str, list[tuple[int, int]]]]] = {
    "one ring": lambda size: {
        "ww": [*chain(size), (size, 0)],
        "rw": [(n, n + 1) for n in range(0, size, 2)],
    },
    "read skews that never close": lambda size: {
        "ww": chain(size),
        "rw": [(n, n + 2) for n in range(size - 2)],
    },
    "write skews": lambda size: {"ww": chain(size), "rw": [(n + 1, n - 1) for n in range(1, size)]},
    "many small cycles": lambda size: {
        "wr": [*chain(size), *((n + 1, n) for n in range(0, size, 2))]
    },
}


def work(graph: Graph) -> int:
    """The number of lines that Python executes in a search for cycles, counting each iteration of a
    loop."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        list(_cycles(graph))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_work_of_cycles_follows_the_edges_whatever_their_shape(shape: str) -> None:
    small, large = (work(_graph(SHAPES[shape](size))) for size in (1_000, 4_000))
    assert large < 5 * small
