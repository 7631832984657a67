"""A log has each of its offsets once, also where the number of its records is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import Tables, alone, healthy

TWICE, GONE = 30, 40


def _again(tables: Tables, *brokers: int, as_another: bool) -> None:
    """One record is at the offset of another one, instead of it or beside it, and not at its
    own."""
    for broker in brokers:
        mine = {row["offset"]: row for row in tables["replicas"] if row["broker"] == broker}
        tables["replicas"].remove(mine[GONE])
        model = mine[GONE] if as_another else mine[TWICE]
        tables["replicas"].append(model | {"offset": TWICE})


@pytest.mark.parametrize("as_another", [False, True])
@pytest.mark.parametrize("brokers", [(1,), (3,), (1, 2, 3)])
def test_one_offset_twice_and_another_one_not_at_all(
    brokers: tuple[int, ...], as_another: bool, tmp_path: Path
) -> None:
    tables = healthy()
    _again(tables, *brokers, as_another=as_another)
    findings = alone("hole", tmp_path, tables).findings
    sentences = [
        (finding.sub_kind, finding.offset, finding.sentence.split("'")[0]) for finding in findings
    ]
    assert sentences == [
        (kind, offset, f"In broker {broker}")
        for kind, offset in (("overlap", TWICE + 1), ("gap", GONE))
        for broker in brokers
    ]
