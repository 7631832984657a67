"""The histories that `bench/verify.py` times are those of a correct cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_timed_history_is_judged_sound(tmp_path: Path) -> None:
    command = [sys.executable, "bench/verify.py", "--sends", "20000", "--partitions", "2"]
    process = subprocess.run(
        [*command, "--engine", "duckdb", "--json", "--scratch", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    (run,) = json.loads(process.stdout)["runs"]
    assert run["verdict"] == "PASS"
