"""Rows of another run, and parts that were rewritten, are reported and cause no finding."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.harness.verify.example_runs import ONE, healthy, judged
from urteil.harness.verify import synthetic
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Verdict
from urteil.harness.verify.synthetic import RUN

AT = 200


@pytest.mark.parametrize("table", ["sends", "reads", "replicas"])
def test_foreign_rows_are_a_reason_and_yield_no_finding(table: str, tmp_path: Path) -> None:
    tables = healthy()
    mixed = tables[table][AT] | {"run": "other"}
    tables[table].append(mixed | {"value_id": mixed["value_id"].replace(RUN, "other")})
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    expected = f"evidence/{table}: rows of several runs, of other among them: collect the evidence"
    assert [reason for reason in result.reasons if reason.startswith(expected)], result.reasons


def test_rewritten_part_is_ignored(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    (part,) = (tmp_path / "evidence" / "reads").glob("*.parquet")
    pq.write_table(pq.read_table(part), part.with_name("part-9.parquet"), compression="gzip")
    result = judge_run(tmp_path, engine="duckdb", master=None, session=None, canary=False)
    assert result.verdict is Verdict.UNKNOWN
    expected = f"evidence/reads/part-9.parquet is the same as {part.name} and was left out"
    assert expected in result.reasons
