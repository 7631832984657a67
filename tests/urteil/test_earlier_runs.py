"""Run folders of earlier releases can still be judged, reported and played again.

`earlier_runs/` holds packed run folders, each named after its scenario and the day on which it was
played. A folder is complete but for journals, logs and disks, which no later step reads.
`min-isr-2026-11-27`: the mutant `ack_ignores_min_isr`, seed 33, 12 records a second. Since that day
some guarantees were split (`split_from`): the findings of the parts are compared as one.

The commands run from this checkout, and at night from the wheel, installed into an empty
environment without PySpark: a file that the wheel lacks fails there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from urteil.harness.scenarios import SCENARIOS
from urteil.harness.schedule import load_schedule
from urteil.harness.verify.guarantees import GUARANTEES

ROOT = Path(__file__).parents[2]
PACKED = Path(__file__).parent / "earlier_runs" / "min-isr-2026-11-27.tar.xz"


@pytest.fixture(params=["checkout", pytest.param("wheel", marks=pytest.mark.thorough)])
def urteil(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command: this checkout's, or the wheel's in an environment with the locked versions."""
    if request.param == "checkout":
        return Path(sys.executable).with_name("urteil")
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    uv, python = Path(sys.executable).with_name("uv"), folder / "env/bin/python"
    _run(uv, "venv", "--quiet", "--python", sys.executable, folder / "env", cwd=folder)
    locked = ("--constraint", ROOT / "requirements.lock")
    _run(uv, "pip", "install", "--quiet", "--python", python, *locked, wheel, cwd=folder)
    return python.with_name("urteil")


@pytest.fixture
def earlier_run(tmp_path: Path) -> Path:
    shutil.unpack_archive(PACKED, tmp_path)
    return tmp_path / "run"


def _run(*command: str | Path, cwd: Path, expected: int = 0) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout


def _verdict(result: Path) -> dict[str, Any]:
    """The verdict, and of each guarantee its violations and findings. Of a guarantee that was not
    split also its status and opportunities."""
    read = json.loads(result.read_text())
    origin = {
        guarantee.name: guarantee.split_from
        for guarantee in GUARANTEES.values()
        if guarantee.split_from
    }
    guarantees: dict[str, dict[str, Any]] = {}
    for judged in read["guarantees"]:
        name = origin.get(judged["name"], judged["name"])
        counts = guarantees.setdefault(name, {"violations": 0, "permitted": 0, "findings": []})
        if name not in origin.values():
            counts |= {key: judged[key] for key in ("status", "opportunities")}
        counts["violations"] += judged["violations"]
        counts["permitted"] += judged["permitted"]
        counts["findings"] += [
            (finding["sub_kind"], finding["topic"], finding["partition"], finding["offset"])
            for finding in judged["findings"]
        ]
    return {"verdict": read["verdict"], "guarantees": guarantees}


def test_earlier_run_is_judged_and_reported_as_before(urteil: Path, earlier_run: Path) -> None:
    """Guarantees that were added since then are not violated."""
    result = earlier_run / "result.json"
    before = _verdict(result)
    known = {*before["guarantees"]}
    result.unlink()
    output = _run(urteil, "verify", earlier_run, cwd=earlier_run.parent, expected=1)
    assert "ack_below_min_isr: 102 violations" in output
    after = _verdict(result)
    added = {name: after["guarantees"].pop(name) for name in {*after["guarantees"]} - known}
    assert after == before
    assert {judged["status"] for judged in added.values()} <= {"holds", "not judged"}
    _run(urteil, "report", earlier_run, cwd=earlier_run.parent)
    assert "ack_below_min_isr" in (earlier_run / "report.html").read_text()


def test_schedule_of_an_earlier_run_is_read(earlier_run: Path) -> None:
    schedule = load_schedule(earlier_run / "schedule.json", SCENARIOS["min-isr"])
    assert [(fault.fault, fault.target) for fault in schedule.faults] == [("crash", "followers")]
