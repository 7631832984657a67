"""A guarantee without a subject in a run is not queried, and its result is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from urteil.harness.verify import check
from urteil.harness.verify.damage import DAMAGES, Untried
from urteil.harness.verify.derived.tables import DERIVED
from urteil.harness.verify.guarantees import GUARANTEES


def _healthy() -> example_runs.Tables:
    return example_runs.healthy()


def _damaged() -> example_runs.Tables:
    copy = example_runs.copy_of(example_runs.healthy())
    for damage in DAMAGES:
        try:
            damage(copy)
        except Untried:
            continue
    return copy.tables


def _logless() -> example_runs.Tables:
    return example_runs.healthy() | {name: [] for name in ("replicas", "logs", "states", "faults")}


@pytest.mark.parametrize("tables", [_healthy, _damaged, _logless])
def test_guarantee_without_subject_has_the_result_of_its_queries(
    tables: Callable[[], example_runs.Tables], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tables()
    short = example_runs.judged(tmp_path / "short", rows)
    monkeypatch.setattr(check, "has_subject", lambda *_: True)
    complete = example_runs.judged(tmp_path / "complete", rows)
    assert short.guarantees == complete.guarantees


@pytest.mark.parametrize("name", GUARANTEES)
def test_subjects_are_derived_tables_their_kinds_or_columns_of_parts(name: str) -> None:
    for subject in GUARANTEES[name].subjects:
        table, _, word = subject.partition(".")
        columns = DERIVED[table].schema.names
        if table == "partitions":
            assert word in columns
        elif word:
            assert "kind" in columns
            assert word in GUARANTEES[name].sub_kinds
