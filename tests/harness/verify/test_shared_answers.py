"""The answers that judgements of these tests share are those of DuckDB."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.verify import shared_answers, shared_parts
from tests.harness.verify.example_runs import healthy, judged
from urteil.harness.verify import evidence, judgement, part_cache
from urteil.harness.verify.engines.engine import Duck, open_engine
from urteil.harness.verify.result import Result, Verdict

CHANGES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "nothing": ("sends", 0, {}),
    "a lost write": ("sends", 7, {"value_id": "another"}),
    "a state without its version": ("states", 1, {"version": None}),
    "an odd view": ("samples", 0, {"value": 1e300}),
    "an odd commit": ("commits", 2, {"offset": 1_000_000}),
}


def comparable(result: Result) -> Any:
    return result.verdict, result.reasons, result.guarantees, result.faults, result.counts


def changed(change: str) -> Any:
    table, row, columns = CHANGES[change]
    tables = healthy()
    tables[table][row] |= columns
    return tables


def test_every_result_is_that_of_an_engine_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice in a row, so that every answer of the second time is a shared one; the others are
    judged without any cache."""
    shared = [comparable(judged(tmp_path / f"{n}", changed(change)))
              for n, change in enumerate([*CHANGES, *CHANGES])]  # fmt: skip
    monkeypatch.setattr(judgement, "open_engine", open_engine)
    monkeypatch.setattr(evidence, "write_rows", shared_parts.write_rows)
    numbers = count()
    monkeypatch.setattr(part_cache, "version", lambda part: (next(numbers),))
    own = [comparable(judged(tmp_path / f"own {change}", changed(change))) for change in CHANGES]
    assert shared == own + own
    assert {verdict for verdict, *_ in own} == {Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN}


def test_judged_run_needs_no_query_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = comparable(judged(tmp_path / "first", healthy()))
    with monkeypatch.context() as patched:
        patched.setattr(Duck, "query", None)
        patched.setattr(Duck, "keep", None)
        assert comparable(judged(tmp_path / "again", healthy())) == first


def test_table_with_other_rows_has_another_version(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    for rows in (3, 5):
        tables = healthy()
        tables["states"] = tables["states"][:rows]
        judged(tmp_path, tables)
        engine = shared_answers.SharedDuck(tmp_path / "work")
        try:
            engine.view("states", evidence / "states")
            assert engine.query("SELECT COUNT(*) AS n FROM states") == [{"n": rows}]
        finally:
            engine.close()
            shutil.rmtree(tmp_path / "work", ignore_errors=True)


def test_recreated_table_has_its_new_rows(tmp_path: Path) -> None:
    engine = shared_answers.SharedDuck(tmp_path)
    try:
        for rows in ([1, 2, 3], [4], [1, 2, 3]):
            engine.table("numbers", pa.table({"n": pa.array(rows, pa.int64())}))
            engine.keep("doubled", "SELECT n.n * 2 AS n FROM numbers n")
            assert engine.query("SELECT SUM(d.n) AS n FROM doubled d") == [{"n": 2 * sum(rows)}]
    finally:
        engine.close()


def test_tables_unused_for_longest_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_answers, "MOST_TABLES", 2)
    for number in (1, 2, 3, 4, 1):
        engine = shared_answers.SharedDuck(tmp_path)
        try:
            engine.table("numbers", pa.table({"n": pa.array([number], pa.int64())}))
            query = f"SELECT n.n + {number} AS n FROM numbers n"
            assert engine.query(query) == [{"n": 2 * number}]
            assert engine.query(f"{query} LIMIT 1") == [{"n": 2 * number}]
        finally:
            engine.close()
        assert len(shared_answers.store().tables) <= 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM pairs",
        "SELECT DISTINCT * FROM pairs",
        "SELECT pairs.* FROM pairs",
        "SELECT other.* FROM pairs other",
        "SELECT other.* FROM pairs AS other",
        "SELECT whole.* FROM (SELECT * FROM pairs) whole",
        "WITH whole AS (SELECT 1 AS one, * FROM pairs) SELECT whole.* FROM whole",
        "SELECT /*+ BROADCAST(pairs) */ * FROM (SELECT 1 AS one) single CROSS JOIN pairs",
    ],
)
def test_star_reads_columns_that_the_query_does_not_name(query: str, tmp_path: Path) -> None:
    engine = shared_answers.SharedDuck(tmp_path)
    try:
        for second in (1, 2):
            engine.table("pairs", pa.table({"a": [7], "b": [second]}))
            (row,) = engine.query(query)
            assert (row["a"], row["b"]) == (7, second)
    finally:
        engine.close()


def test_query_is_answered_again_only_if_what_it_reads_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = shared_answers.SharedDuck(tmp_path)
    counted, summed = "SELECT COUNT(*) AS n FROM pairs", "SELECT SUM(pairs.a) AS n FROM pairs"
    try:
        engine.table("pairs", pa.table({"a": [3, 4], "b": [1, 2]}))
        assert (engine.query(counted), engine.query(summed)) == ([{"n": 2}], [{"n": 7}])
        engine.table("pairs", pa.table({"a": [3, 4, 5], "b": [1, 2, 3]}))
        assert (engine.query(counted), engine.query(summed)) == ([{"n": 3}], [{"n": 12}])
        engine.table("pairs", pa.table({"a": [3, 4], "b": [8, 9]}))
        with monkeypatch.context() as patched:
            patched.setattr(Duck, "query", None)
            assert (engine.query(counted), engine.query(summed)) == ([{"n": 2}], [{"n": 7}])
        engine.table("pairs", pa.table({"a": [3, 4], "c": [8, 9]}))
        with pytest.raises(duckdb.BinderException):
            engine.query("SELECT SUM(pairs.b) AS n FROM pairs")
    finally:
        engine.close()


@pytest.mark.parametrize("value", [None, 0, False, "", 1, True, 1.0, "1"])
def test_rows_of_another_value_are_another_file(value: Any, tmp_path: Path) -> None:
    """Values that Python calls equal among them."""
    kind = {bool: pa.bool_(), str: pa.string(), float: pa.float64()}.get(type(value), pa.int64())
    schema = pa.schema([pa.field("a", kind)])
    shared_parts.write_shared(tmp_path / "shared", schema, [{"a": value}])
    shared_parts.write_rows(tmp_path / "own", schema, [{"a": value}])
    shared, own = (pq.read_table(tmp_path / name / "part-0.parquet") for name in ("shared", "own"))
    assert shared.equals(own)
    assert shared["a"].to_pylist() == [value]
