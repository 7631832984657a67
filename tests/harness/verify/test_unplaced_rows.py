"""Rows without a place prove nothing, and may belong to any partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables, alone, asked_for, healthy, judged
from urteil.harness.verify.result import Verdict

START, READER = 120, "c0"


@pytest.mark.parametrize("column", ["from_offset", "to_offset", "isolation"])
def test_pass_without_its_range_or_isolation_is_ignored(column: str, tmp_path: Path) -> None:
    """It began where the log did then."""
    tables = healthy()
    for row in tables["logs"]:
        row["log_start"] = START
    for row in tables["passes"]:
        if row["final"]:
            row |= {"from_offset": START, column: None}
    finals = {row["client"] for row in tables["passes"] if row["final"]}
    tables["reads"] = [
        row for row in tables["reads"] if row["client"] not in finals or row["offset"] >= START + 9
    ]
    with asked_for("lost_write", "vanished_read"):
        result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert any("no complete final pass over" in reason for reason in result.reasons)


def _moved_back(tables: Tables, **place: Any) -> None:
    """A reader begins its fourth poll where the third did, which moved it."""
    polls = {row["poll"]: row for row in tables["polls"] if row["client"] == READER}
    mine = [row for row in tables["reads"] if row["client"] == READER]
    back = [row for row in mine if row["poll"] == 3]
    for row in mine:
        row["poll"] += row["poll"] > 3
    for row in polls.values():
        row["poll"] += row["poll"] > 3
    times = {name: polls[3][name] + 1 for name in ("invoke_ns", "complete_ns")}
    tables["polls"].append(polls[3] | times | {"poll": 4, "event": "seek"} | place)
    tables["polls"].append(polls[3] | times | {"poll": 4})
    tables["reads"] += [row | {"poll": 4, "read_ns": row["read_ns"] + 1} for row in back]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"topic_id": None}, set()),
        ({"partition": None}, set()),
        ({"topic_id": "another"}, {"reads", "position"}),
        ({"event": None}, {"reads", "position"}),
    ],
)
def test_reader_moved_to_an_unknown_position_yields_no_finding(
    place: dict[str, Any], expected: set[str], tmp_path: Path
) -> None:
    tables = healthy()
    _moved_back(tables, **place)
    findings = alone("nonmonotonic_poll", tmp_path, tables).findings
    assert {finding.sub_kind for finding in findings} == expected
