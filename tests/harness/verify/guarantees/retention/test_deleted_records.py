"""Deleted records need not be delivered, also while they are on disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups.test_group_guarantees import healthy, judge_groups
from tests.harness.verify.guarantees.transactions import test_pipeline_guarantees as pipeline

LOW, START = 300, 310


def _begins_at(tables: Tables, start: int) -> None:
    """Every log begins at this offset, and has the records before it in its first segment."""
    for row in tables["logs"]:
        row["log_start"] = start


@pytest.mark.parametrize(("start", "expected"), [(START, [START]), (0, [*range(LOW, START + 1)])])
def test_group_need_not_process_deleted_records(
    start: int, expected: list[int], tmp_path: Path
) -> None:
    tables = healthy()
    _begins_at(tables, start)
    tables["reads"] = [
        row for row in tables["reads"]
        if not (row["client"] == "g1" and LOW <= row["offset"] <= START)
    ]  # fmt: skip
    findings = judge_groups(tmp_path, tables)["commit_beyond_processed"].findings
    assert [finding.offset for finding in findings] == expected


@pytest.mark.parametrize(("start", "expected"), [(START, [START]), (0, [*range(LOW, START + 1)])])
def test_application_need_not_copy_deleted_records(
    start: int, expected: list[int], tmp_path: Path
) -> None:
    values = pipeline.values()
    tables = pipeline.copied(values[:LOW] + values[START + 1 :])
    _begins_at(tables, start)
    findings = pipeline.judged(tmp_path, tables)["unprocessed"].findings
    assert [finding.offset for finding in findings] == expected


def test_later_deleted_record_is_copied_once(tmp_path: Path) -> None:
    values = pipeline.values()
    tables = pipeline.copied([*values[: LOW + 1], *values[LOW:]])
    _begins_at(tables, START)
    findings = pipeline.judged(tmp_path, tables, promise="exactly-once")["processed_twice"].findings
    assert [finding.offset for finding in findings] == [LOW]
