"""Clocks that went back are found in any batch of a part; answers out of order are none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.verify.example_runs import healthy, judged
from urteil.harness.verify.result import Verdict
from urteil.harness.verify.validation import clocks
from urteil.harness.verify.validation.clocks import backward_calls

S = 1_000_000_000


def _sentences(folder: Path, rows: list[tuple[str, int, int, int | None]]) -> list[str]:
    names = ("client", "partition_intended", "op", "invoke_ns")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    more = {"session": [0] * len(rows), "topic_id": ["t"] * len(rows)}
    part = folder / "evidence" / "sends" / "p0.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns | more), part)
    return backward_calls(folder)


@pytest.mark.parametrize("piece", [5, 7, 100])
def test_backward_step_is_reported_in_any_pieces(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "ROWS", piece)
    times = [*range(100, 120), *range(105, 125)]
    sentences = _sentences(tmp_path, [("p0", 0, op, at * S) for op, at in enumerate(times)])
    (sentence,) = sentences
    assert sentence.startswith("a clock went back 1 times in evidence/sends/p0.parquet, by ")


@pytest.mark.parametrize("piece", [5, 100])
def test_late_or_foreign_or_missing_times_are_no_clock_step(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "ROWS", piece)
    rows: list[tuple[str, int, int, int | None]] = [
        (client, partition, op, (100 + op + shift) * S)
        for client, partition, shift in (("p0", 0, 0), ("p1", 0, -50), ("p0", 1, -90))
        for op in (0, 3, 1, 2, 4, 5, 9, 8, 7, 6, 10, 11, 12, 13)
    ]
    rows[5] = ("p0", 0, 5, 900 * S)
    rows[10] = ("p0", 0, 10, 1 * S)
    rows[12] = ("p0", 0, 12, None)
    assert _sentences(tmp_path, rows) == []


@pytest.mark.parametrize(
    ("table", "rows", "by_s", "reason"),
    [
        (
            "reads",
            slice(200, 400),
            -5,
            "a clock went back 1 times in evidence/reads/part-0.parquet",
        ),
        (
            "reads",
            slice(7, 8),
            -3600,
            "reads/part-0.parquet: read_ns is 3599 s before the run: a clock leapt",
        ),
        (
            "states",
            slice(2, None),
            -20,
            "ZooKeeper's clock went back by 12.000 s (evidence/states)",
        ),
        ("states", slice(2, None), 3600, "s after the run: a clock leapt"),
        ("assignments", slice(1, 2), 3600, "s after the run: a clock leapt"),
        ("samples", slice(0, 2), -3600, "s before the run: a clock leapt"),
    ],
)
@pytest.mark.usefixtures("few")
def test_impossible_times_are_a_reason_and_yield_no_finding(
    table: str, rows: slice, by_s: int, reason: str, tmp_path: Path
) -> None:
    tables = healthy()
    (column,) = [name for name in tables[table][0] if name.endswith("_ns")]
    for row in tables[table][rows]:
        row[column] += by_s * S
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert any(reason in text for text in result.reasons), result.reasons


def test_states_before_the_run_are_no_clock_leap(tmp_path: Path) -> None:
    tables = healthy()
    tables["states"][0]["at_ns"] -= 3600 * S
    assert judged(tmp_path, tables).verdict is Verdict.PASS


def test_bound_of_a_time_is_no_clock_leap(tmp_path: Path) -> None:
    """A proxy with the lab's clock is exact: its bound is 0 ns, which is no moment."""
    tables = healthy()
    at_ns = tables["faults"][0]["begin_ns"] + S
    tables["link_events"] = [
        {"run": "r", "at_ns": at_ns, "bound_ns": 0, "fault": "lose_answer", "link": "client->b1"}
        | {"direction": "answer", "api": "Produce", "version": 9, "correlation_id": 1}
        | {"client_id": "p1", "act": "drop", "occurrence": 1, "detail": "", "message": None}
    ]
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.PASS, result.reasons
