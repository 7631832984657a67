"""Deleted positions stay deleted, unless a failover may have restored them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups.test_group_guarantees import (
    ONE,
    PLACE,
    add_commit,
    add_commit_read,
    add_coordinator_terms,
    healthy,
    judge,
)
from urteil.harness.evidence.acts import DELETE_POSITION
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import CRASH_NS, END_NS, LED_NS, S

GROUP = "gone"
EARLY_NS = CRASH_NS - 9 * S


def deleted(tables: Tables, at_ns: int, outcome: str = "ok") -> None:
    place = {"topic_id": PLACE["topic_id"], "topic": PLACE["topic"], "partition": 0}
    tables["admin_ops"].append(
        {"run": "r", "act": DELETE_POSITION, "subject": GROUP, "outcome": outcome, "before": "{}"}
        | {"invoke_ns": at_ns, "complete_ns": at_ns + 1000, "after": json.dumps(place)}
    )


def committed(until_ns: int = LED_NS) -> Tables:
    """A group whose position 5 was committed while broker 1 coordinated it; that term ends then."""
    tables = healthy()
    tables.setdefault("admin_ops", [])
    add_coordinator_terms(tables, until_ns)
    add_commit(tables, "f1", None, 5, EARLY_NS - S)
    tables["commits"][-1] |= {"group": GROUP}
    return tables


def assert_only(run_dir: Path, tables: Tables, *broken: str) -> None:
    names = ("commit_went_back", "commit_register")
    results = judge(run_dir, tables, synthetic.scenario(ONE), synthetic.facts(ONE), names)
    assert {name for name in names if results[name].status is Status.VIOLATED} == set(broken)


def append_answer(tables: Tables, offset: int | None, at_ns: int) -> None:
    add_commit_read(tables, offset, at_ns, "f1")
    tables["commit_reads"][-1] |= {"group": GROUP}


@pytest.mark.parametrize(("offset", "broken"), [(None, []), (5, ["commit_register"])])
@pytest.mark.parametrize("at_ns", [EARLY_NS + S, END_NS])
def test_deleted_position_is_not_returned(
    at_ns: int, offset: int | None, broken: list[str], tmp_path: Path
) -> None:
    tables = committed()
    deleted(tables, EARLY_NS)
    append_answer(tables, offset, at_ns)
    assert_only(tmp_path, tables, *broken)


def test_undeleted_position_must_be_returned(tmp_path: Path) -> None:
    tables = committed()
    append_answer(tables, 5, END_NS)
    assert_only(tmp_path / "there", tables)
    append_answer(tables, None, END_NS + S)
    assert_only(tmp_path / "gone", tables, "commit_register", "commit_went_back")


@pytest.mark.parametrize("outcome", ["ok", "info"])
def test_failover_may_undo_a_recent_deletion(outcome: str, tmp_path: Path) -> None:
    tables = committed()
    deleted(tables, CRASH_NS - S // 2, outcome)
    append_answer(tables, None, CRASH_NS - S // 4)
    append_answer(tables, 5, END_NS)
    assert_only(tmp_path, tables)


@pytest.mark.parametrize("until_ns", [EARLY_NS + S, EARLY_NS - S])
def test_change_of_leadership_may_undo_it_without_a_fault(until_ns: int, tmp_path: Path) -> None:
    tables = committed(until_ns)
    deleted(tables, EARLY_NS)
    append_answer(tables, 5, END_NS)
    assert_only(tmp_path, tables)


def test_a_commit_under_way_beside_the_deletion_leaves_it_open(tmp_path: Path) -> None:
    """It may be stored before and returned after it, until a client reads the log."""
    tables = committed()
    add_commit(tables, "f1", None, 6, EARLY_NS - 500)
    tables["commits"][-1] |= {"group": GROUP}
    deleted(tables, EARLY_NS)
    append_answer(tables, 6, EARLY_NS + S)
    append_answer(tables, None, END_NS)
    assert_only(tmp_path, tables)
