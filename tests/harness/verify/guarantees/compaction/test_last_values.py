"""A compacted topic keeps the last value of a key, also where another send of the key has an
unknown fate, and no reader may pass over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, Tables, healthy, topic
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from urteil.harness.verify import synthetic

KEY, OTHER = 40, 60
"""The offset of a key's acknowledged value, and that of another send of the key."""
DAY = {"cleanup_policy": "compact", "delete_retention_ms": "86400000"}
LOST = ("latest_value_lost", "stale_value_visible", "tombstone_too_early", "resurrected_key")


def one_key(**other: Any) -> Tables:
    """Every record has a key of its own, but the other send has the victim's."""
    tables = healthy()
    for log in tables["logs"]:
        log["active_base"] = ONE.records
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = f"k{KEY if row['offset'] == OTHER else row['offset']}"
    for send in tables["sends"]:
        if send["offset"] == OTHER:
            send |= other
    return tables


def unread_one(**other: Any) -> Tables:
    """The same, and no reader received the other send's record."""
    tables = one_key(**other)
    tables["reads"] = [row for row in tables["reads"] if row["offset"] != OTHER]
    return tables


UNKNOWN = {"outcome": "info", "offset": None, "ambiguous": True}


def clean(tables: Tables, *offsets: int) -> None:
    """No log, and no final pass, has a record at these offsets."""
    tables["replicas"] = [row for row in tables["replicas"] if row["offset"] not in offsets]
    tables["reads"] = [
        row for row in tables["reads"] if row["offset"] not in offsets or row["client"] == "c0"
    ]


def findings(run_dir: Path, tables: Tables, *names: str) -> list[tuple[str, str, int | None]]:
    facts = synthetic.facts(ONE, topics=topic(**DAY))
    results = judge(run_dir, tables, synthetic.scenario(ONE), facts, names)
    return [
        (name, finding.sub_kind, finding.offset)
        for name, result in results.items()
        for finding in result.findings
        if not finding.permitted
    ]


def test_value_is_lost_if_the_log_lacks_its_key(tmp_path: Path) -> None:
    tables = unread_one(**UNKNOWN)
    clean(tables, KEY, OTHER)
    assert findings(tmp_path, tables, *LOST) == [("latest_value_lost", "absent", KEY)]


def test_unknown_send_may_have_superseded_a_value(tmp_path: Path) -> None:
    tables = unread_one(**UNKNOWN)
    clean(tables, KEY)
    assert findings(tmp_path, tables, *LOST) == []


def test_read_value_of_unknown_outcome_is_lost_beside_older_one(tmp_path: Path) -> None:
    tables = one_key(**UNKNOWN)
    clean(tables, OTHER)
    assert findings(tmp_path, tables, *LOST) == [
        ("latest_value_lost", "older shown", OTHER),
        ("stale_value_visible", "in the log", KEY),
    ]


def test_unknown_tombstone_may_have_deleted_a_key(tmp_path: Path) -> None:
    tables = unread_one(**UNKNOWN, tombstone=True)
    clean(tables, KEY, OTHER)
    assert findings(tmp_path, tables, *LOST) == []


def test_older_value_in_the_log_replaces_no_lost_one(tmp_path: Path) -> None:
    tables = unread_one(**UNKNOWN)
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            if row["offset"] == KEY - 1:
                row["key"] = f"k{KEY}"
    clean(tables, KEY, OTHER)
    assert findings(tmp_path, tables, *LOST) == [
        ("latest_value_lost", "older shown", KEY),
        ("stale_value_visible", "in the log", KEY - 1),
    ]


def test_lost_tombstone_is_found_beside_an_unknown_value(tmp_path: Path) -> None:
    tables = unread_one(**UNKNOWN)
    for send in tables["sends"]:
        send["tombstone"] = send["tombstone"] or send["offset"] == KEY
    clean(tables, KEY, OTHER)
    assert findings(tmp_path, tables, *LOST) == [("tombstone_too_early", "absent", KEY)]


@pytest.mark.parametrize(("skipped", "expected"), [(OTHER, [("poll_skip", "gap", OTHER)]),
                                                   (KEY, [])])  # fmt: skip
def test_only_superseded_values_may_be_passed_over(
    skipped: int, expected: list[tuple[str, str, int | None]], tmp_path: Path
) -> None:
    tables = one_key()
    tables["reads"] = [
        row for row in tables["reads"] if row["offset"] != skipped or row["client"] != "c0"
    ]
    assert findings(tmp_path, tables, "poll_skip") == expected


@pytest.mark.parametrize(
    ("skipped", "expected"),
    [(OTHER, [("commit_beyond_processed", "not processed", OTHER)]), (KEY, [])],
)
def test_group_commits_past_superseded_values_only(
    skipped: int, expected: list[tuple[str, str, int | None]], tmp_path: Path
) -> None:
    tables = one_key()
    members = {row["client"] for row in tables["assignments"]}
    tables["reads"] = [
        row for row in tables["reads"] if row["offset"] != skipped or row["client"] not in members
    ]
    assert findings(tmp_path, tables, "commit_beyond_processed") == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sequence": 100}, []),
        ({"sequence": 0}, [("sequence_gap", "repeated", KEY)]),
    ],
)
def test_sequences_rise_in_a_compacted_log(
    changes: dict[str, int], expected: list[tuple[str, str, int | None]], tmp_path: Path
) -> None:
    tables = one_key()
    clean(tables, *range(KEY + 1, ONE.records))
    for row in tables["replicas"]:
        if row["offset"] == KEY:
            row |= changes
    assert findings(tmp_path, tables, "sequence_gap") == expected
