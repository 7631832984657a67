"""Times that went back are found in any piece of a part, and answers out of order are none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from urteil.harness.verify import clocks
from urteil.harness.verify.clocks import went_back

S = 1_000_000_000


def _told(folder: Path, rows: list[tuple[str, int, int, int | None]]) -> list[str]:
    names = ("client", "partition_intended", "op", "invoke_ns")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    more = {"session": [0] * len(rows), "topic_id": ["t"] * len(rows)}
    part = folder / "evidence" / "sends" / "p0.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns | more), part)
    return went_back(folder)


@pytest.mark.parametrize("piece", [5, 7, 100])
def test_a_step_back_is_told_whatever_the_pieces(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "ROWS", piece)
    times = [*range(100, 120), *range(105, 125)]
    told = _told(tmp_path, [("p0", 0, op, at * S) for op, at in enumerate(times)])
    (one,) = told
    assert one.startswith("a clock went back 1 times in evidence/sends/p0.parquet, by ")


@pytest.mark.parametrize("piece", [5, 100])
def test_late_answers_single_rows_other_clients_and_missing_times_are_no_step_back(
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
    assert _told(tmp_path, rows) == []
