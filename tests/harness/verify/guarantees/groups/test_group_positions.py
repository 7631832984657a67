"""Where members resume, and which positions are possible at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups.test_group_guarantees import (
    HALF,
    ONE,
    add_assignment,
    add_commit,
    add_commit_read,
    assert_only,
    healthy,
    judge,
    judge_groups,
)
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import END_NS, S


def assigned_again(tables: Tables, at: int, skipped: int = 0) -> None:
    """`g1` is assigned its partition again in the same generation, after it has read up to `at`, as
    by a coordinator that has just taken over; it continues this number of offsets further."""
    mine = [row for row in tables["reads"] if row["client"] == "g1" and row["offset"] >= at]
    since_ns = min(row["read_ns"] for row in mine)
    for event, before_ns in (("revoked", 5), ("assigned", 4)):
        add_assignment(tables, "g1", 2, since_ns - before_ns, event)
    is_reported = next(row for row in tables["commit_reads"] if row["client"] == "g1")
    commit_read = {"offset": at, "invoke_ns": since_ns - 3, "complete_ns": since_ns - 2}
    tables["commit_reads"].append(is_reported | commit_read)
    for row in mine:
        row["pass"] = 2
    first = next(row for row in tables["polls"] if row["poll"] == mine[0]["poll"])
    first |= {"event": "rebalance", "position_before": None}
    gone = {at + number for number in range(skipped)}
    kept = [row for row in tables["reads"] if row["client"] != "g1" or row["offset"] not in gone]
    tables["reads"] = kept


@pytest.mark.parametrize(
    ("skipped", "expected"), [(0, []), (2, [("after a rebalance", HALF + 50)])]
)
def test_member_continues_at_its_last_fetched_position(
    skipped: int, expected: list[tuple[str, int]], tmp_path: Path
) -> None:
    tables = healthy()
    assigned_again(tables, HALF + 50, skipped)
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    result = judge(tmp_path, tables, scenario, run_facts, ("poll_skip",))["poll_skip"]
    assert [(finding.sub_kind, finding.offset) for finding in result.findings] == expected


@pytest.mark.parametrize(
    ("partition", "later_ns", "expected"),
    [(0, 0, []), (None, 0, []), (1, 0, [HALF + 50]), (0, -2 * S, [HALF + 50])],
    ids=["there", "everywhere", "elsewhere", "long before"],
)
def test_only_moves_after_the_fetched_position_excuse_a_member(
    partition: int | None, later_ns: int, expected: list[int], tmp_path: Path
) -> None:
    tables = healthy()
    assigned_again(tables, HALF + 50, 2)
    asked_ns = tables["commit_reads"][-1]["invoke_ns"]
    poll = next(row["poll"] for row in tables["reads"]
                if row["client"] == "g1" and row["pass"] == 2)  # fmt: skip
    model = first_poll(tables)
    at = {"invoke_ns": asked_ns + later_ns, "complete_ns": asked_ns + later_ns + 1}
    place = {} if partition is not None else {"topic_id": None, "topic": None}
    moved = {"partition": partition, "poll": poll, "event": "seek", "position_before": None}
    tables["polls"].append(model | at | place | moved)
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    result = judge(tmp_path, tables, scenario, run_facts, ("poll_skip",))["poll_skip"]
    assert [finding.offset for finding in result.findings] == expected


def test_position_below_the_log_start_skips_nothing(tmp_path: Path) -> None:
    """Deleted records are still on disk; the member got its new position only."""
    tables = healthy()
    assigned_again(tables, HALF + 50, 2)
    for row in tables["logs"]:
        row["log_start"] = HALF + 52
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    assert not judge(tmp_path, tables, scenario, run_facts, ("poll_skip",))["poll_skip"].findings


def begun_late(tables: Tables) -> None:
    """`g1` was the only member, and it began in the middle (auto.offset.reset=latest)."""
    for table in ("clients", "reads", "polls", "commits", "commit_reads", "assignments"):
        tables[table] = [row for row in tables[table] if row["client"] != "g0"]
    for row in tables["commit_reads"]:
        row["offset"] = row["offset"] if row["client"] != "g1" else None


def first_poll(tables: Tables) -> dict[str, Any]:
    return next(row for row in tables["polls"] if row["client"] == "g1")


def test_group_need_not_process_records_before_its_start(tmp_path: Path) -> None:
    tables = healthy()
    begun_late(tables)
    assert_only(judge_groups(tmp_path, tables))
    first_poll(tables)["position_before"] = 40
    (finding, *_) = judge_groups(tmp_path / "asked", tables)["commit_beyond_processed"].findings
    assert finding.offset == 40


def test_group_need_not_process_records_a_member_skipped_by_seek(tmp_path: Path) -> None:
    tables = healthy()
    gone = range(HALF, HALF + 50)
    tables["reads"] = [
        row for row in tables["reads"] if row["client"] != "g1" or row["offset"] not in gone
    ]
    first_poll(tables)["position_after"] = HALF + 10
    after = [row for row in tables["polls"] if row["client"] == "g1"][1]
    after |= {"event": "seek", "position_before": HALF + 50}
    findings = judge_groups(tmp_path, tables)["commit_beyond_processed"].findings
    assert [finding.offset for finding in findings] == [*range(HALF, HALF + 10)]
    after["event"] = "reset"  # it did not want to
    findings = judge_groups(tmp_path / "reset", tables)["commit_beyond_processed"].findings
    assert [finding.offset for finding in findings] == [*gone]


def test_polls_may_be_counted_from_anywhere(tmp_path: Path) -> None:
    """As by a clock: the first one is the first, whatever its number."""
    tables = healthy()
    at_ns, poll = END_NS + 60 * S, 1 << 46
    add_assignment(tables, "g2", 4, at_ns)
    tables["clients"].append(tables["clients"][-1] | {"client": "g2"})
    mine = [row for row in tables["reads"] if row["client"] == "g1"]
    who = {"client": "g2", "generation": 4, "read_ns": at_ns + S, "pass": 1}
    tables["reads"].append(mine[0] | who | {"poll": poll - 1})
    tables["reads"].append(mine[-1] | who | {"poll": poll})
    (finding,) = judge_groups(tmp_path, tables)["commit_went_back"].findings
    assert (finding.sub_kind, finding.offset) == ("resumed", HALF)


@pytest.mark.parametrize(("later_s", "broken"), [(1, ()), (11, ("commit_went_back",))])
def test_a_position_moves_with_its_transactions_marker(
    later_s: int, broken: tuple[str, ...], tmp_path: Path
) -> None:
    """Which is written after the commit was acknowledged."""
    tables = healthy()
    at_ns = END_NS + 60 * S
    add_commit_read(tables, ONE.records, at_ns - S)
    add_commit(tables, "g1", 3, ONE.records + 50, at_ns)
    tables["commits"][-1]["txn"] = 1
    add_commit_read(tables, ONE.records, at_ns + later_s * S)
    value = {"commit_beyond_processed", "commit_register"}
    result = judge_groups(tmp_path, tables)
    violated = {
        name for name, outcome in result.items() if outcome.status is Status.VIOLATED
    } - value
    assert violated == set(broken)
    assert bool(result["commit_register"].violations) == bool(broken)


def test_many_transactions_in_a_row_leave_the_register_judged(tmp_path: Path) -> None:
    """A producer has one transaction at a time: the next one's end shows the last one's markers."""
    tables = healthy()
    at_ns = END_NS + 60 * S
    for txn in range(60):
        add_commit(tables, "g1", 3, ONE.records + txn, at_ns + txn * S // 10)
        tables["commits"][-1]["txn"] = txn
    add_commit_read(tables, ONE.records + 1000, at_ns + 5 * S)
    (finding,) = judge_groups(tmp_path, tables)["commit_register"].findings
    assert finding.at_ns == at_ns + 5 * S


@pytest.mark.parametrize("reported", [None, -1])
def test_absent_position_is_null_or_minus_one(reported: int | None, tmp_path: Path) -> None:
    """Before any commit; a later commit is returned as a position."""
    tables = healthy()
    first_ns = min(row["invoke_ns"] for row in tables["commits"])
    add_commit_read(tables, reported, first_ns - S)
    assert_only(judge_groups(tmp_path / "before", tables))
    add_commit_read(tables, reported, END_NS + 60 * S)
    results = judge_groups(tmp_path, tables)
    assert_only(results, "commit_register", "commit_went_back")
    for name in ("commit_register", "commit_went_back"):
        (finding,) = results[name].findings
        assert "received no offset" in finding.sentence
