"""A finding about an index names the entry and the log's content at its position."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import alone, healthy


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("time", {"there_timestamp_ms": 7}, "as of 5, but the batch there is of 7."),
        ("time", {"before_timestamp_ms": 9}, "but a batch before it is of 9."),
        ("time", {"there": None, "there_base": None}, "but nothing is there."),
        ("offset", {"there_base": 99}, "but the batch it points at begins at 99."),
        ("txn", {"there": "commit"}, "but no abort marker is there."),
    ],
)
def test_finding_names_what_differs(
    kind: str, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    tables = healthy()
    entry = next(row for row in tables["indexes"] if row["kind"] == "offset")
    at = {"timestamp_ms": 5, "there_timestamp_ms": 5, "before_timestamp_ms": None}
    tables["indexes"] = [entry | at | {"kind": kind} | changes]
    (finding,) = alone("index_wrong", tmp_path, tables).findings
    assert finding.sentence.endswith(said), finding.sentence
    name = "transaction" if kind == "txn" else kind
    assert f"of the {name} index of segment" in finding.sentence


def test_finding_of_descending_entries_names_both(tmp_path: Path) -> None:
    tables = healthy()
    entry = next(row for row in tables["indexes"] if row["kind"] == "offset")
    before = entry | {"offset": entry["offset"] + 4, "entry": entry["entry"] - 1}
    tables["indexes"] = [before, entry]
    (finding,) = alone("index_wrong", tmp_path, tables).findings
    assert finding.sub_kind == "offset, not ascending"
    assert finding.sentence.endswith(f", and the entry before it {before['offset']}.")
