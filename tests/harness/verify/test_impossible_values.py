"""Impossible values are reported with their file and cause no finding; findings cut long texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import healthy, judged, named
from urteil.harness.verify.result import Status, Verdict

NUMBERS = [
    ("states", "leader", -7),
    ("states", "leader_epoch", -2),
    ("sends", "acks", 7),
    ("sends", "acks", -2),
    ("logs", "log_start", -4),
    ("replicas", "offset", -1),
    ("reads", "offset", -1),
    ("passes", "from_offset", -3),
    ("offset_answers", "offset", 1 << 62),
    ("states", "at_ns", 1 << 62),
    ("polls", "poll", 1 << 62),
    ("reads", "pass", 1 << 62),
    ("passes", "pass", 1 << 62),
    ("sends", "op", 1 << 62),
    ("states", "wall_ms", 1 << 62),
]


def absurd_number(table: str, column: str, value: int) -> str:
    """The reason for a value that is impossible in this column."""
    return (
        f"evidence/{table}/part-0.parquet: {column} with impossible numbers ({value}); they "
        "count as unknown: collect the evidence again"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("table", "column", "value"), NUMBERS)
def test_an_impossible_number_makes_the_verdict_unknown(
    table: str, column: str, value: int, tmp_path: Path
) -> None:
    tables = healthy()
    tables[table][2][column] = value
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert absurd_number(table, column, value) in result.reasons


def test_impossible_number_is_a_reason_and_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    several = {(table, column): value for table, column, value in NUMBERS}
    for (table, column), value in several.items():
        tables[table][2][column] = value
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    for (table, column), value in several.items():
        named_so = rf"evidence/{table}/.* {column}\b.* with impossible numbers \(.*{value}\b"
        assert any(re.match(named_so, reason) for reason in result.reasons), (table, column)


def test_missing_controller_epoch_is_no_fall(tmp_path: Path) -> None:
    tables = healthy()
    tables["states"][2]["controller_epoch"] = None
    assert judged(tmp_path, tables).verdict is Verdict.PASS


IDENTITIES = [
    ("sends", "session"),
    ("sends", "op"),
    ("replicas", "broker"),
    ("clients", "client"),
    ("commits", "group"),
    ("commits", "partition"),
    ("polls", "session"),
    ("indexes", "broker"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("table", "column"), IDENTITIES)
def test_a_row_without_its_identity_makes_the_verdict_unknown(
    table: str, column: str, tmp_path: Path
) -> None:
    tables = healthy()
    tables[table][1][column] = None
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    expected = (
        f"evidence/{table}/part-0.parquet: it has rows without {column}: collect the evidence"
    )
    assert any(reason.startswith(expected) for reason in result.reasons)


def test_empty_identity_column_is_a_reason(tmp_path: Path) -> None:
    tables = healthy()
    for table, column in IDENTITIES:
        tables[table][1][column] = None
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    for table, column in IDENTITIES:
        named_so = rf"evidence/{table}/.* has rows without .*\b{column}\b"
        assert any(re.match(named_so, reason) for reason in result.reasons), (table, column)


WORDS = [
    ("passes", "isolation", "READ_COMMITTED"),
    ("clients", "isolation", "read-committed"),
    ("polls", "event", "assigned"),
    ("commits", "outcome", "OK"),
    ("assignments", "event", "ASSIGNED"),
    ("replicas", "control", "COMMIT"),
]


def unknown_word(table: str, column: str, word: str) -> str:
    return f"evidence/{table}/part-0.parquet: {column} with unknown words ({word!r})"


@pytest.mark.thorough
@pytest.mark.parametrize(("table", "column", "word"), WORDS)
def test_unknown_word_makes_the_verdict_unknown(
    table: str, column: str, word: str, tmp_path: Path
) -> None:
    """A query would treat the value as another isolation level, or ignore it."""
    tables = healthy()
    tables[table][1][column] = word
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert unknown_word(table, column, word) in result.reasons


def test_unknown_word_is_a_reason(tmp_path: Path) -> None:
    tables = healthy()
    for table, column, word in WORDS:
        tables[table][1][column] = word
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert {unknown_word(*place) for place in WORDS} <= {*result.reasons}


def test_minus_one_of_a_coordinator_is_no_damage(tmp_path: Path) -> None:
    tables = healthy()
    tables["states"][-1] |= {"leader": -2, "at_ns": tables["states"][-1]["at_ns"]}
    tables["offset_answers"] = [
        {"run": "r", "node": -1, "leader_epoch": -1, "offset": -1, "api_version": 0}
    ]
    result = judged(tmp_path, tables)
    assert not [reason for reason in result.reasons if "impossible numbers" in reason]


def test_long_text_is_abbreviated_in_a_finding(tmp_path: Path) -> None:
    tables = healthy()
    key = "x" * 2_000_000
    tables["sends"][7]["key"] = key
    result = judged(tmp_path, tables)
    phantom = named(result, "phantom")
    assert phantom.status is Status.VIOLATED
    (finding,) = [finding for finding in phantom.findings if finding.sub_kind == "another key"]
    assert "... (2,000,000 characters)" in finding.sentence
    sentences: list[Any] = [finding.sentence, *finding.records[0].values(), *result.reasons]
    assert max(len(str(sentence)) for sentence in sentences) < 1_000


@pytest.mark.parametrize(
    "column",
    [
        "zxid",
        "isr",
        *(
            pytest.param(column, marks=pytest.mark.thorough)
            for column in ("at_ns", "version", "topic_id", "partition", "leader_epoch")
        ),
    ],
)
def test_state_with_a_missing_cell_yields_no_finding(column: str, tmp_path: Path) -> None:
    tables = healthy()
    tables["states"][1][column] = None
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert any(
        reason.startswith("evidence/states/part-0.parquet: 1 rows lack one of zxid, at_ns, version")
        for reason in result.reasons
    )


def test_state_between_missing_versions_yields_no_finding(tmp_path: Path) -> None:
    """The former leader may have been in an ISR that the evidence lacks."""
    tables = healthy()
    for row in tables["states"][:1]:
        row["isr"] = f"[{row['leader']}]"
    del tables["states"][1:-1]
    assert named(judged(tmp_path, tables), "unclean_leader").status is not Status.VIOLATED


def test_log_without_epochs_has_not_lost_them(tmp_path: Path) -> None:
    tables = healthy()
    tables["logs"][2]["epochs"] = None
    result = judged(tmp_path / "untold", tables)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == [
        "evidence/logs: brokers 3 have no epochs of urteil-0, though others have"
    ]
    tables["logs"][2]["epochs"] = "{}"
    assert named(judged(tmp_path / "none", tables), "epoch_lineage").status is Status.VIOLATED


def test_logs_with_different_starts_are_a_reason(tmp_path: Path) -> None:
    tables = healthy()
    tables["logs"][2]["log_start"] = 1
    reasons = judged(tmp_path, tables).reasons
    assert "evidence/logs: the logs of urteil-0 begin at 0, 1, and nothing was deleted" in reasons


VIEWS = [("value", 1e300), ("value", -1e300), ("value", float("nan")), ("source", f"b{10**22}")]


@pytest.mark.thorough
@pytest.mark.parametrize(("column", "value"), VIEWS)
def test_an_impossible_view_of_a_leader_is_ignored(
    column: str, value: object, tmp_path: Path
) -> None:
    tables = healthy()
    tables["samples"][0][column] = value
    assert judged(tmp_path, tables).verdict is Verdict.PASS


def test_impossible_views_of_a_leader_are_ignored(tmp_path: Path) -> None:
    tables = healthy()
    first = tables["samples"][0]
    tables["samples"] += [first | {column: value} for column, value in VIEWS]
    assert judged(tmp_path, tables).verdict is Verdict.PASS


def test_answer_of_an_unknown_broker_is_attributed_to_no_leader(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["offset_answers"]:
        row["node"] = -1
    assert named(judged(tmp_path, tables), "disagreement").violations == 0


def test_answer_before_the_run_deposes_no_leader(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["samples"][:2]:
        row["at_ns"] = 1
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert named(result, "two_leaders").violations == 0
