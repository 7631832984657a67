"""The lab measures an overloaded host."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq

from tests.waiting import until
from urteil.harness import host_load

SPIN = ["nice", "-n", "19", "timeout", "30", "sh", "-c", "while :; do :; done"]
"""They are counted whatever their priority, and so hold up no other test of this machine."""


def test_host_load_is_measured_and_becomes_evidence(tmp_path: Path) -> None:
    spinning = [subprocess.Popen(SPIN) for _ in range(8 * (os.cpu_count() or 1))]
    try:
        with host_load.record_host_load(tmp_path, "r1") as rows:
            until(lambda: any(row["value"] > 6 for row in rows), "nobody saw the crowd")
    finally:
        for process in spinning:
            process.terminate()
            process.wait()
    stored_rows = pq.read_table(tmp_path / "evidence" / "samples").to_pylist()
    assert [row["value"] for row in stored_rows] == [row["value"] for row in rows]
    assert {(row["source"], row["metric"]) for row in stored_rows} == {
        (host_load.SOURCE, host_load.METRIC)
    }
