"""A returned end is beyond the records that readers had received, whatever their acks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy
from urteil.harness.verify.synthetic import END_NS, S


def answered(offset: int, acks: int, epoch: int = 1) -> Tables:
    """A leader returned an end long after all had been read."""
    tables = healthy()
    for send in tables["sends"]:
        send["acks"] = acks
    at_ns = END_NS + 6 * S + S // 2
    model = next(row for row in tables["offset_answers"] if row["query"] == "latest")
    late = {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "leader_epoch": epoch, "offset": offset}
    tables["offset_answers"].append(model | late)
    return tables


@pytest.mark.parametrize(
    ("acks", "offset", "expected"),
    [
        (1, ONE.records - 1, ["behind a read"]),
        (-1, ONE.records - 1, ["behind"]),
        (1, ONE.records, []),
    ],
)
def test_end_that_is_not_beyond_a_read_is_found(
    acks: int, offset: int, expected: list[str], tmp_path: Path
) -> None:
    result = alone("end_below_ack", tmp_path, answered(offset, acks))
    assert [finding.sub_kind for finding in result.findings] == expected


def test_deposed_leader_need_not_know_what_was_read_since(tmp_path: Path) -> None:
    assert alone("end_below_ack", tmp_path, answered(ONE.records - 1, 1, epoch=0)).violations == 0
