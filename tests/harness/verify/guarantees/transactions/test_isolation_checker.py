"""The isolation checker finds the same anomalies as a brute-force search in random histories."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.harness.verify.guarantees.transactions.list_histories import (
    NAMES,
    NUMBERS,
    Edge,
    ListHistory,
    Row,
    circles,
    closure,
    random_history,
)
from urteil.harness.verify.derived.cycles import cycle_rows

STEP = re.compile(r"(ww|wr|early|rw|rt)(?: list-(\d+)@(\d+))?")
RELATIONS = {"ww": ListHistory.ww, "wr": ListHistory.wr, "rw": ListHistory.rw, "rt": ListHistory.rt}
SEEDS = range(60)
MORE_SEEDS = range(60, 600)


def _found(history: ListHistory, folder: Path) -> list[Row]:
    history.write(folder)
    rows, _ = cycle_rows(folder, history.txns, NUMBERS, NAMES)
    return rows


def _ways(rows: list[Row], *kinds: str) -> list[list[str]]:
    return [row["txns"].split(" -> ") for row in rows if row["kind"] in kinds]


def _steps(row: Row) -> list[str]:
    return [STEP.fullmatch(step)[1] for step in row["edges"].split(", ")]  # type: ignore[index]


def _assert_edges_exist(history: ListHistory, row: Row) -> None:
    """Each edge of a cycle is one of the history, and the place of it shows it."""
    way = row["txns"].split(" -> ")
    assert way[0] == way[-1]
    for edge, step in zip(pairwise(way), row["edges"].split(", "), strict=True):
        match = STEP.fullmatch(step)
        assert match is not None
        kind, p, offset = match.groups()
        assert edge in RELATIONS[kind](history), (row, step)
        if kind != "rt":
            writer = edge[0] if kind == "wr" else edge[1]
            assert history.writer(int(p), int(offset)) == writer, (row, step)


def _circles_of(history: ListHistory, rows: list[Row], kind: str, edges: set[Edge]) -> None:
    """One cycle is found in each group of transactions that lead to each other by these edges."""
    groups = circles(edges)
    found = [next(group for group in groups if {*way} <= group) for way in _ways(rows, kind)]
    assert Counter(found) == Counter(groups)


def _compare(history: ListHistory, folder: Path) -> set[str]:
    """Compares everything; returns the kinds of anomalies that the history has."""
    rows = _found(history, folder)
    for row in rows:
        _assert_edges_exist(history, row)
    ww, wr, rw, rt = (RELATIONS[kind](history) for kind in ("ww", "wr", "rw", "rt"))
    _circles_of(history, rows, "g0", ww)
    _circles_of(history, rows, "g1c", wr)
    by_reads = {node: group for group in circles(wr) for node in group}
    with_time = {
        group
        for group in circles(wr | rt)
        if any({*edge} <= group and by_reads.get(edge[0], edge[0]) != by_reads.get(edge[1], edge[1])
               for edge in wr)
    }  # fmt: skip
    found = [{*way} for way in _ways(rows, "g1c realtime")]
    assert len(found) == len(with_time)
    assert all(any(way <= group for way in found) for group in with_time)
    without_rw = closure(ww | wr)
    skewed = {reader for reader, writer in rw if (writer, reader) in without_rw}
    assert {way[0] for way in _ways(rows, "g_single")} == skewed
    for row in rows:
        if row["kind"] == "g_single":
            assert _steps(row).count("rw") == 1
        if row["kind"] == "g2_item":
            left, right = row["txns"].split(" -> ")[:2]
            assert _steps(row).count("rw") > 1
            assert (right, left) not in without_rw
    writes_skewed = [{*way} for way in _ways(rows, "g2_item")]
    for group in circles(ww | wr | rw):
        if not group & skewed and not any(group & other for other in circles(ww | wr)):
            assert any(way <= group for way in writes_skewed), group
    updates = {(way[0], row["p"]) for row in rows if row["kind"] == "lost_update"
               for way in [row["txns"].split(" -> ")]}  # fmt: skip
    assert updates == history.lost_updates()
    partial = {
        (row["kind"], *row["txns"].split(" -> ")[:2], row["p"])
        for row in rows
        if row["kind"] in ("g1b", "fractured")
    }
    assert partial == history.partial_reads()
    return {row["kind"] for row in rows}


ALL = {"g0", "g1c", "g1c with writes", "g1c realtime", "g_single", "g2_item", "lost_update"} | {
    "g1b",
    "fractured",
}


def test_checker_agrees_with_brute_force(tmp_path: Path) -> None:
    kinds = set()
    for seed in SEEDS:
        kinds |= _compare(random_history(seed), tmp_path / str(seed))
    assert kinds == ALL


@pytest.mark.thorough
def test_checker_agrees_with_brute_force_on_many_histories(tmp_path: Path) -> None:
    for seed in MORE_SEEDS:
        _compare(random_history(seed, size=4 + seed % 6), tmp_path / str(seed))
