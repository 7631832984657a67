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
    part = folder / "evidence" / "sends" / "p0.parquet"
    part.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns | {"session": [0] * len(rows)}), part)
    return went_back(folder)


@pytest.mark.parametrize("piece", [2, 3, 100])
def test_every_step_back_is_counted_whatever_the_pieces(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "ROWS", piece)
    times = [1, 2, 3, 2, 4, 1, 2]
    told = _told(tmp_path, [("p0", 0, op, at * S) for op, at in enumerate(times)])
    where = "evidence/sends/p0.parquet"
    assert told == [f"a clock went back 2 times in {where}, by 3.000 s at most"]


@pytest.mark.parametrize("piece", [2, 100])
def test_late_answers_other_clients_and_missing_times_are_no_step_back(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "ROWS", piece)
    rows = [("p0", 0, 0, 10 * S), ("p0", 0, 2, 12 * S), ("p1", 0, 0, 1 * S), ("p0", 0, 1, 11 * S)]
    assert _told(tmp_path, [*rows, ("p0", 1, 3, 2 * S), ("p0", 0, 4, None)]) == []
