"""Malformed cells are reported with their file and cause no finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import Tables, healthy, judged
from urteil.harness.evidence.schema import TABLES
from urteil.harness.verify.result import Result, Status, Verdict
from urteil.harness.verify.synthetic import RUN
from urteil.harness.verify.validation.cell_checks import describe_invalid, drop_invalid

KNOWN = {"zxid": 1, "at_ns": 1, "version": 0}
LOG = {"broker": 1, "topic_id": "t", "partition": 0, "log_end": 7, "epochs": '{"0": 0}'}


def violated(result: Result) -> set[str]:
    return {
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    }


@pytest.mark.parametrize(
    ("table", "column", "good", "bad"),
    [
        ("states", "isr", "[1, 2]", "1,2"),
        ("states", "isr", "[]", '["b1"]'),
        ("states", "replicas", '{"0": [1], "1": [2]}', '{"a": [1]}'),
        ("logs", "epochs", "{}", "[0, 4]"),
        ("logs", "epochs", '{"0": 0, "3": 9}', '{"0": null}'),
        ("faults", "targets", "b1", "[b1"),
        ("faults", "targets", "b1->b2", '{"b": 1}'),
        ("faults", "targets", '["b1->b2"]', "[" * 100_000),
        ("faults", "harm", '{"at_ns": 1, "brokers": {"b1": {"t-0": [4, null]}}}', "{x"),
        ("admin_ops", "after", '{"elected": {"0": "b1"}}', '{"elected": [0]}'),
        ("admin_ops", "before", "{}", "50"),
        ("samples", "labels", '{"topic": "t"}', "[1]"),
        ("faults", "harm", "{}", '{"brokers": {"b1": {"t-0": [4, null]}}}'),
    ],
)
def test_json_of_another_kind_is_a_reason_and_ignored(
    table: str, column: str, good: str, bad: str
) -> None:
    formed = [column.name for column in TABLES[table].columns if column.form]
    row = {**dict.fromkeys(formed), **(LOG if table == "logs" else KNOWN)}
    for text in (good, None):
        assert list(describe_invalid(table, "part", [row | {column: text}])) == []
        assert drop_invalid(table, [row | {column: text}])[0][column] == text
    (sentence,) = describe_invalid(table, "evidence/x/part", [row | {column: bad}])
    assert sentence.startswith(f"evidence/x/part: {column} of 1 rows is not ")
    assert sentence.endswith("collect the evidence again")
    assert drop_invalid(table, [row | {column: bad}])[0][column] is None


def test_row_without_a_place_is_a_reason_and_ignored() -> None:
    rows = [LOG, LOG | {"broker": None}, LOG | {"log_end": None}]
    assert list(describe_invalid("logs", "p", rows)) == [
        "p: 2 rows lack one of broker, topic_id, partition, log_end: collect the evidence again"
    ]
    assert drop_invalid("logs", rows) == [LOG]


def _spoil(tables: Tables) -> None:
    tables["states"][0]["isr"] = "1,2,3"
    tables["faults"][0]["harm"] = "{"
    tables["logs"][0]["broker"] = None
    tables["logs"][1]["epochs"] = "?"
    act = {"run": RUN, "act": "elect preferred", "outcome": "ok", "subject": "urteil"}
    tables["admin_ops"] = [act | {"invoke_ns": 1, "complete_ns": 2, "after": '{"elected": [0]}'}]
    tables["sends"][5]["outcome"] = "OK"
    for row in tables["reads"]:
        row["session"] = None
    for row in tables["replicas"]:
        row["producer_epoch"] = None if row["offset"] == 50 else row["producer_epoch"]
    place = {name: tables["sends"][0][name] for name in ("run", "topic_id", "topic", "partition")}
    asked = {"node": 1, "invoke_ns": 1, "complete_ns": 2, "api_version": 7, "leader_epoch": 0}
    tables["offset_answers"] = [place | asked | {"query": f"time:{10**30}", "offset": -1}]
    tables["samples"] = [{"run": place["run"], "at_ns": 1, "source": "b1", "value": float("nan"),
                          "metric": "metadata_leader",
                          "labels": '{"topic": "urteil", "partition": "0"}'}]  # fmt: skip


def test_odd_cells_yield_no_finding_and_are_reasons(tmp_path: Path) -> None:
    tables = healthy()
    _spoil(tables)
    result = judged(tmp_path, tables)
    assert (violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    sentences = "\n".join(result.reasons)
    for part in (
        "evidence/states/part-0.parquet: isr of 1 rows is not a list of brokers, as 1,2,3",
        "evidence/faults/part-0.parquet: harm of 1 rows",
        "evidence/logs/part-0.parquet: 1 rows lack one of broker",
        "evidence/logs/part-0.parquet: epochs of 1 rows",
        "evidence/admin_ops/part-0.parquet: after of 1 rows is not an object",
        "evidence/sends/part-0.parquet: outcome with unknown words ('OK')",
        "evidence/reads/part-0.parquet: it has rows without session",
        "2 stored records without batch_crc or offset or leader_epoch in topics of the run, "
        "producer_id or producer_epoch when there is a sequence",
    ):
        assert part in sentences


def test_repeated_state_version_counts_once(tmp_path: Path) -> None:
    tables = healthy()
    tables["states"] += [dict(row) for row in tables["states"]]
    assert judged(tmp_path, tables).verdict is Verdict.PASS
