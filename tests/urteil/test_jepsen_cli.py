"""`urteil export` and `urteil import` on the command line."""

from __future__ import annotations

import gzip
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


SENT = """{:type :invoke, :process 0, :f :send, :value [[:send 0 1]]}
{:type :ok, :process 0, :f :send, :value [[:send 0 [0 1]]]}
{:type :invoke, :process 1, :f :assign, :value [0], :seek-to-beginning? true}
{:type :ok, :process 1, :f :assign, :value [0], :seek-to-beginning? true}
{:type :invoke, :process 1, :f :poll, :value [[:poll]]}
{:type :ok, :process 1, :f :poll, :value [[:poll {0 [[0 1] [1 1]]}]]}
"""


@pytest.mark.parametrize(("name", "whole"), [("history.edn", False), ("history.edn.gz", True)])
def test_a_folder_of_a_store_and_a_packed_history_are_read(
    name: str, whole: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "20261122T230000"
    store.mkdir()
    (store / "results.edn").write_text("{:valid? false}")
    told = SENT.encode()
    (store / name).write_bytes(gzip.compress(told) if name.endswith("gz") else told)
    file = store if whole else store / name
    assert exit_code(["import", str(file), "--out", str(tmp_path / "runs")]) == 1
    told = capsys.readouterr().out
    assert "of j0 (jepsen) was delivered in one pass twice" in " ".join(told.split())


def test_a_folder_without_a_history_and_a_cut_one_are_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(tmp_path / "runs")
    assert exit_code(["import", str(tmp_path), "--out", runs]) == 254
    assert "holds no history.edn" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "history.edn.gz").write_bytes(gzip.compress(SENT.encode())[:-20])
    assert exit_code(["import", str(tmp_path), "--out", runs]) == 254
    assert "cannot be unpacked" in " ".join(capsys.readouterr().err.split())
