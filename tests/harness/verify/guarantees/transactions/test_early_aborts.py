"""A coordinator that ends a transaction before its timeout is found, unless it had a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    Tables,
    judged,
    transactional_tables,
)
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.synthetic import END_NS, S


def _shut_out(tables: Tables, **changes: Any) -> Row:
    """The transaction of a client of its own, which is shut out of it a second after its begin."""
    model = next(row for row in tables["clients"] if row["client"] == "p0")
    fields = {"client": "t9", "kind": "txn", "transactional_id": "id-t9"}
    tables["clients"].append(model | fields)
    begun_ns = END_NS + 60 * S
    times = {"init_invoke_ns": begun_ns - S, "init_ns": begun_ns - S // 2, "begin_ns": begun_ns}
    ended = {"end_ns": begun_ns + S, "commit_invoke_ns": None, "outcome": "fenced"}
    txn = tables["txns"][0] | {"client": "t9", "transactional_id": "id-t9", "txn": 0}
    txn |= times | ended | {"error": "_FENCED"} | changes
    tables["txns"].append(txn)
    return txn


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["cut short"]),
        ({"outcome": "unknown", "error": "INVALID_PRODUCER_EPOCH"}, ["cut short"]),
        ({"outcome": "unknown", "error": "_TIMED_OUT"}, []),
        ({"end_ns": END_NS + 69 * S}, []),
    ],
)
def test_transaction_aborted_before_its_timeout_is_found(
    changes: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    tables = transactional_tables()
    _shut_out(tables, **changes)
    result = judged(tmp_path, tables, "hanging_txn")["hanging_txn"]
    assert [finding.sub_kind for finding in result.findings] == expected
    for finding in result.findings:
        assert "id-t9 was aborted by its coordinator" in finding.sentence


def test_fencing_by_others_or_in_a_fault_yields_no_finding(tmp_path: Path) -> None:
    shared = transactional_tables()
    txn = _shut_out(shared)
    shared["clients"].append(shared["clients"][-1] | {"client": "t9.2", "session": 1})
    raw = transactional_tables()
    _shut_out(raw)
    raw["clients"][-1]["kind"] = "late"
    cases = {"shared": shared, "raw": raw}
    for begin_ns in (txn["begin_ns"], txn["init_invoke_ns"] - 9 * S):
        tables = cases[f"fault {begin_ns}"] = transactional_tables()
        _shut_out(tables)
        fault = {"begin_ns": begin_ns, "end_ns": begin_ns + S // 2, "healed_ns": begin_ns + S // 2}
        tables["faults"].append(tables["faults"][0] | fault)
    for name, tables in cases.items():
        result = judged(tmp_path / name, tables, "hanging_txn")["hanging_txn"]
        assert result.violations == 0, name


@pytest.mark.parametrize(
    ("changes", "kind", "expected"),
    [
        ({"error": "error 49"}, "late", ["forgotten"]),
        ({"error": "error 49"}, "txn", []),
        ({"error": "error 51"}, "late", []),
        ({"error": None, "outcome": "aborted"}, "late", []),
    ],
)
def test_forgotten_transactional_id_is_found(
    changes: dict[str, Any], kind: str, expected: list[str], tmp_path: Path
) -> None:
    tables = transactional_tables()
    _shut_out(tables, **({"outcome": "unknown"} | changes))
    tables["clients"][-1]["kind"] = kind
    result = judged(tmp_path, tables, "hanging_txn")["hanging_txn"]
    assert [finding.sub_kind for finding in result.findings] == expected
    for finding in result.findings:
        assert "initialised with the transactional id id-t9" in finding.sentence
