"""`urteil export` and `urteil import` on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify import made
from urteil.cli.main import exit_code


def test_a_run_goes_out_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made.judged(tmp_path / "run", made.healthy())
    assert exit_code(["export", str(tmp_path / "run"), "--to", str(tmp_path / "h.edn")]) == 0
    capsys.readouterr()
    asked = ["import", str(tmp_path / "h.edn"), "--isolation", "read_uncommitted"]
    assert exit_code([*asked, "--out", str(tmp_path / "runs")]) in (0, 2)
    told = capsys.readouterr().out
    assert "violated" not in told
    assert "jepsen on jepsen" in told
    assert len(list((tmp_path / "runs").glob("*/report.html"))) == 1


def test_what_is_no_history_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.edn").write_text("[:nothing]")
    runs = tmp_path / "runs"
    assert exit_code(["import", str(tmp_path / "h.edn"), "--out", str(runs)]) == 254
    assert ":nothing is no operation" in capsys.readouterr().err
    assert not list(runs.iterdir())
