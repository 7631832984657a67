"""A lab process that dies during a run makes the verdict UNKNOWN, with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import until

RUN = "run calm --duration-s 6 --rate 60 --seed 1 --engine duckdb --json"
"""Long enough to find the part and end it while the load lasts."""


@pytest.mark.parametrize(
    ("part", "file"),
    [
        ("toxiproxy-b2", "nodes/toxiproxy-b2/proxies.json"),
        pytest.param("zk1", "nodes/zk1/zoo.cfg", marks=pytest.mark.thorough),
    ],
)
def test_death_of_a_lab_process_makes_the_verdict_unknown(
    tmp_path: Path, part: str, file: str
) -> None:
    command = [sys.executable, "-m", "urteil", *RUN.split(), "--out", str(tmp_path)]
    lab = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    victim = await_loaded(tmp_path, file)
    victim.kill()
    output, log = lab.communicate(timeout=120)
    assert lab.returncode == 2, log
    result = json.loads(output)
    assert result["verdict"] == "UNKNOWN"
    assert any(part in reason for reason in result["reasons"]), result["reasons"]
    assert (tmp_path / "latest" / "report.html").exists()


def await_loaded(out: Path, file: str) -> psutil.Process:
    """The process that was given `file`, once a producer has been at work."""
    journal = out / "latest" / "journal"
    until(lambda: any(path.stat().st_size > 5_000 for path in journal.glob("p1*")), "no load began")
    (process,) = [
        candidate for candidate in psutil.process_iter(["cmdline"]) if is_of(candidate, out, file)
    ]
    return process


def is_of(process: psutil.Process, out: Path, file: str) -> bool:
    words = process.info["cmdline"] or []
    return any(str(out) in word and file in word for word in words)
