"""Findings beyond the first hundred are all on disk, with the query that lists them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.harness.verify.example_runs import healthy, judged
from urteil.harness.verify.check import FINDINGS
from urteil.harness.verify.engines.engine import Duck, to_duckdb
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.stored_findings import save_all_findings, violated_sub_kinds

MANY = FINDINGS + 37


def broken(folder: Path, reads: int) -> GuaranteeResult:
    """The verdict on `corrupt` of a run in which this number of reads has a wrong checksum."""
    tables = healthy()
    victims = [row for row in tables["reads"] if row["intact"]][:reads]
    assert len(victims) == reads
    for row in victims:
        row["intact"] = False
    result = judged(folder, tables)
    return next(guarantee for guarantee in result.guarantees if guarantee.name == "corrupt")


def test_all_findings_are_rows_of_parquet_beside_the_query(tmp_path: Path) -> None:
    result = broken(tmp_path, MANY)
    assert (result.violations, len(result.findings)) == (MANY, FINDINGS)
    rows = ds.dataset(tmp_path / "findings" / "corrupt").to_table().to_pylist()
    assert len(rows) == MANY
    places = {(row["p"], row["off"], row["sub_kind"]) for row in rows}
    shown = {(finding.offset, finding.sub_kind) for finding in result.findings}
    assert shown <= {(offset, kind) for _, offset, kind in places}
    query = (tmp_path / "findings" / "corrupt.sql").read_text()
    assert query.startswith("SELECT")
    assert to_duckdb(query)


def test_findings_complete_in_the_result_are_not_stored_again(tmp_path: Path) -> None:
    result = broken(tmp_path, 3)
    assert result.violations == len(result.findings) == 3
    assert not (tmp_path / "findings").exists()


def test_unwritable_query_is_a_reason(tmp_path: Path) -> None:
    many = GuaranteeResult(name="corrupt", status=Status.VIOLATED, promise="", source="",
                           violations=MANY)  # fmt: skip
    (tmp_path / "findings" / "old").mkdir(parents=True)
    engine = Duck(tmp_path / "work")
    try:
        save_all_findings(engine, tmp_path, [many])
    finally:
        engine.close()
    assert [path.name for path in (tmp_path / "findings").glob("*.sql")] == ["corrupt.sql"]
    assert not (tmp_path / "findings" / "old").exists()
    assert (tmp_path / "findings" / "corrupt.sql").read_text().startswith("-- could not be written")


@pytest.mark.parametrize("violations", [0, FINDINGS])
def test_first_hundred_findings_need_no_file(tmp_path: Path, violations: int) -> None:
    engine = Duck(tmp_path / "work")
    result = broken(tmp_path / "run", violations)
    save_all_findings(engine, tmp_path, [result])
    engine.close()
    assert not (tmp_path / "findings").exists()


def test_stored_findings_have_each_sub_kind_with_its_first_time(tmp_path: Path) -> None:
    """The first hundred by place have neither every kind nor the earliest of one."""
    result = broken(tmp_path, MANY)
    rows = ds.dataset(tmp_path / "findings" / "corrupt").to_table().to_pylist()
    assert violated_sub_kinds(tmp_path, result) == {"served": min(row["at_ns"] for row in rows)}
    more = [
        {"sub_kind": "stored", "permitted": None, "at_ns": None},
        {"sub_kind": "served", "permitted": None, "at_ns": 7},
        {"sub_kind": "batch", "permitted": "acks=1", "at_ns": 1},
    ]
    pq.write_table(pa.Table.from_pylist(more), tmp_path / "findings" / "corrupt" / "more.parquet")
    assert violated_sub_kinds(tmp_path, result) == {"served": 7, "stored": None}
    truncated = msgspec.structs.replace(result, violations=len(result.findings))
    first_ns = min(finding.at_ns for finding in result.findings if finding.at_ns is not None)
    assert violated_sub_kinds(tmp_path, truncated) == {"served": first_ns}
