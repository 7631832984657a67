"""Numbers that nothing can be, and rows without what they are about, are told with their file, and
accuse nobody. Texts without end stand cut in findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.made import healthy, judged, named
from urteil.harness.verify.result import Status, Verdict


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
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
    ],
)
def test_a_number_that_none_can_be_counts_as_unknown(
    table: str, column: str, value: int, tmp_path: Path
) -> None:
    tables = healthy()
    tables[table][2][column] = value
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    told = (
        f"evidence/{table}/part-0.parquet: {column} with numbers that none can be ({value}); they "
        "count as unknown: collect the evidence again"
    )
    assert told in result.reasons


def test_a_controller_epoch_that_is_not_told_did_not_fall(tmp_path: Path) -> None:
    tables = healthy()
    tables["states"][2]["controller_epoch"] = None
    assert judged(tmp_path, tables).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("sends", "session"),
        ("sends", "op"),
        ("replicas", "broker"),
        ("clients", "client"),
        ("commits", "group"),
        ("commits", "partition"),
        ("polls", "session"),
        ("indexes", "broker"),
    ],
)
def test_rows_that_tell_of_nobody_are_told(table: str, column: str, tmp_path: Path) -> None:
    tables = healthy()
    tables[table][1][column] = None
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    told = f"evidence/{table}/part-0.parquet: it has rows without {column}: collect the evidence"
    assert any(one.startswith(told) for one in result.reasons)


@pytest.mark.parametrize(
    ("table", "column", "word"),
    [
        ("passes", "isolation", "READ_COMMITTED"),
        ("clients", "isolation", "read-committed"),
        ("polls", "event", "assigned"),
        ("commits", "outcome", "OK"),
        ("assignments", "event", "ASSIGNED"),
        ("replicas", "control", "COMMIT"),
    ],
)
def test_a_word_that_no_check_knows_is_told(
    table: str, column: str, word: str, tmp_path: Path
) -> None:
    """What is written so would be taken for another isolation, or for nothing at all."""
    tables = healthy()
    tables[table][1][column] = word
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    told = f"evidence/{table}/part-0.parquet: {column} with words that no check knows ({word!r})"
    assert told in result.reasons


def test_what_a_coordinator_has_no_number_for_is_no_damage(tmp_path: Path) -> None:
    tables = healthy()
    tables["states"][-1] |= {"leader": -2, "at_ns": tables["states"][-1]["at_ns"]}
    tables["offset_answers"] = [
        {"run": "r", "node": -1, "leader_epoch": -1, "offset": -1, "api_version": 0}
    ]
    result = judged(tmp_path, tables)
    assert not [one for one in result.reasons if "none can be" in one]


def test_a_text_without_end_is_cut_in_a_finding(tmp_path: Path) -> None:
    tables = healthy()
    key = "x" * 2_000_000
    tables["sends"][7]["key"] = key
    result = judged(tmp_path, tables)
    found = named(result, "phantom")
    assert found.status is Status.VIOLATED
    (finding,) = [one for one in found.findings if one.sub_kind == "another key"]
    assert "... (2,000,000 characters)" in finding.sentence
    told: list[Any] = [finding.sentence, *finding.records[0].values(), *result.reasons]
    assert max(len(str(one)) for one in told) < 1_000


@pytest.mark.parametrize(
    "column", ["zxid", "at_ns", "version", "topic_id", "partition", "leader_epoch", "isr"]
)
def test_a_state_that_lacks_a_cell_accuses_nobody(column: str, tmp_path: Path) -> None:
    tables = healthy()
    tables["states"][1][column] = None
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert any(
        one.startswith("evidence/states/part-0.parquet: 1 rows lack one of zxid, at_ns, version")
        for one in result.reasons
    )


def test_a_state_between_versions_that_are_missing_accuses_nobody(tmp_path: Path) -> None:
    """Who led before may have been in an ISR that the evidence lacks."""
    tables = healthy()
    for row in tables["states"][:1]:
        row["isr"] = f"[{row['leader']}]"
    del tables["states"][1:-1]
    assert named(judged(tmp_path, tables), "unclean_leader").status is not Status.VIOLATED


def test_a_log_that_tells_no_epochs_has_not_forgotten_them(tmp_path: Path) -> None:
    tables = healthy()
    tables["logs"][2]["epochs"] = None
    result = judged(tmp_path / "untold", tables)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == [
        "evidence/logs: brokers 3 tell no epochs of urteil-0, though others do"
    ]
    tables["logs"][2]["epochs"] = "{}"
    assert named(judged(tmp_path / "none", tables), "epoch_lineage").status is Status.VIOLATED


def test_logs_that_begin_at_different_offsets_are_told(tmp_path: Path) -> None:
    tables = healthy()
    tables["logs"][2]["log_start"] = 1
    reasons = judged(tmp_path, tables).reasons
    assert "evidence/logs: the logs of urteil-0 begin at 0, 1, and nobody deleted any" in reasons


@pytest.mark.parametrize(
    ("column", "value"),
    [("value", 1e300), ("value", -1e300), ("value", float("nan")), ("source", f"b{10**22}")],
)
def test_a_view_of_a_leader_that_none_can_be_is_none(
    column: str, value: object, tmp_path: Path
) -> None:
    tables = healthy()
    tables["samples"][0][column] = value
    assert judged(tmp_path, tables).verdict is Verdict.PASS


def test_an_answer_of_which_nobody_knows_who_gave_it_is_no_other_leaders(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["offset_answers"]:
        row["node"] = -1
    assert named(judged(tmp_path, tables), "disagreement").violations == 0


def test_what_was_told_before_the_run_began_deposes_nobody(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["samples"][:2]:
        row["at_ns"] = 1
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert named(result, "two_leaders").violations == 0
