"""The answers that judgements of these tests share are those of DuckDB."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify import shared_answers
from tests.harness.verify.made import healthy, judged
from urteil.harness.verify import judgement
from urteil.harness.verify.engines.engine import Duck, open_engine
from urteil.harness.verify.result import Result, Verdict

CHANGES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "nothing": ("sends", 0, {}),
    "a lost write": ("sends", 7, {"value_id": "another"}),
    "a state without its version": ("states", 1, {"version": None}),
    "an odd view": ("samples", 0, {"value": 1e300}),
    "an odd commit": ("commits", 2, {"offset": 1_000_000}),
}


def told(result: Result) -> Any:
    return result.verdict, result.reasons, result.guarantees, result.faults, result.counts


def changed(change: str) -> Any:
    table, row, columns = CHANGES[change]
    tables = healthy()
    tables[table][row] |= columns
    return tables


def test_every_result_is_that_of_an_engine_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice in a row, so that every answer of the second time is a shared one."""
    shared = [told(judged(tmp_path / f"{n}", changed(change)))
              for n, change in enumerate([*CHANGES, *CHANGES])]  # fmt: skip
    monkeypatch.setattr(judgement, "open_engine", open_engine)
    own = [told(judged(tmp_path / f"own {change}", changed(change))) for change in CHANGES]
    assert shared == own + own
    assert {verdict for verdict, *_ in own} == {Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN}


def test_a_run_that_was_judged_asks_duckdb_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = told(judged(tmp_path / "first", healthy()))
    with monkeypatch.context() as patched:
        patched.setattr(Duck, "query", None)
        patched.setattr(Duck, "keep", None)
        assert told(judged(tmp_path / "again", healthy())) == first


def test_a_table_with_other_rows_is_another_question(tmp_path: Path) -> None:
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
