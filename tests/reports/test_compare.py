"""Two runs side by side, as the command line prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.reports import example_run
from urteil.cli.main import exit_code
from urteil.harness.verify.result import FaultResult, Verdict
from urteil.reports.compare import compare


def test_differences_are_shown_with_numbers(tmp_path: Path) -> None:
    a = example_run.run(tmp_path / "a")
    b = example_run.run(
        tmp_path / "b", verdict=Verdict.PASS, guarantees=[], versions={"urteil": "9"}
    )
    lines = {(line.part, line.what): line for line in compare(a, b)}
    assert (lines["run", "verdict"].a, lines["run", "verdict"].b) == ("FAIL", "PASS")
    assert lines["versions", "urteil"].differs
    assert lines["guarantees", "lost_write"].a == "violated, 120 violations"
    assert lines["load", "acknowledged"].a == lines["load", "acknowledged"].b
    assert lines["load", "latency p99"].change == "+0%"
    assert lines["unavailability", "1. crash: unavailable"].a == "3.20 s"
    assert not [line for line in lines.values() if line.part == "settings"]


def test_large_change_is_shown_as_a_factor(tmp_path: Path) -> None:
    a, b = example_run.run(tmp_path / "a"), example_run.run(tmp_path / "b", faults=[slower(500.0)])
    for first, second, change in ((a, b, "x156"), (b, a, "x0.0064")):
        lines = {(line.part, line.what): line for line in compare(first, second)}
        assert lines["unavailability", "1. crash: unavailable"].change == change


def slower(seconds: float) -> FaultResult:
    return replace(example_run.result(Verdict.PASS).faults[0], unavailable_s=seconds)


def test_command_line_prints_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example_run.run(tmp_path / "a")
    example_run.run(tmp_path / "b", seed=8)
    assert exit_code(["compare", "a", "b", "--out", str(tmp_path), "--json"]) == 0
    change = {line["what"]: line["b"] for line in json.loads(capsys.readouterr().out)}
    assert change["seed"] == "8"
    assert exit_code(["compare", "a", "b", "--out", str(tmp_path)]) == 0
    assert "latency p99" in capsys.readouterr().out
    assert exit_code(["compare", "a", "nowhere", "--out", str(tmp_path)]) == 254
