"""`urteil export` and `urteil import` on the command line."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.verify import example_runs
from urteil.cli.main import exit_code


def test_exported_run_can_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example_runs.judged(tmp_path / "run", example_runs.healthy())
    assert exit_code(["export", str(tmp_path / "run"), "--to", str(tmp_path / "h.edn")]) == 0
    capsys.readouterr()
    asked = ["import", str(tmp_path / "h.edn"), "--isolation", "read_uncommitted"]
    assert exit_code([*asked, "--out", str(tmp_path / "runs")]) in (0, 2)
    output = capsys.readouterr().out
    assert "violated" not in output
    assert "jepsen on jepsen" in output
    assert len(list((tmp_path / "runs").glob("*/report.html"))) == 1


def test_invalid_history_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h.edn").write_text("[:nothing]")
    runs = tmp_path / "runs"
    assert exit_code(["import", str(tmp_path / "h.edn"), "--out", str(runs)]) == 254
    assert ":nothing is not an operation" in capsys.readouterr().err
    assert not list(runs.iterdir())


SENT = """{:type :invoke, :process 0, :f :send, :value [[:send 0 1]]}
{:type :ok, :process 0, :f :send, :value [[:send 0 [0 1]]]}
{:type :invoke, :process 1, :f :assign, :value [0], :seek-to-beginning? true}
{:type :ok, :process 1, :f :assign, :value [0], :seek-to-beginning? true}
{:type :invoke, :process 1, :f :poll, :value [[:poll]]}
{:type :ok, :process 1, :f :poll, :value [[:poll {0 [[0 1] [1 1]]}]]}
"""


def test_interrupted_import_leaves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("urteil.harness.imports.jepsen.importer.load", interrupt)
    history = tmp_path / "history.edn"
    history.write_text("")
    exit_code(["import", str(history), "--out", str(tmp_path / "runs")])
    assert not [*(tmp_path / "runs").glob("*")]


@pytest.mark.parametrize(("name", "has_store"), [("history.edn", False), ("history.edn.gz", True)])
def test_store_folder_and_packed_history_are_read(
    name: str, has_store: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "20261122T230000"
    store.mkdir()
    (store / "results.edn").write_text("{:valid? false}")
    output = SENT.encode()
    (store / name).write_bytes(gzip.compress(output) if name.endswith("gz") else output)
    file = store if has_store else store / name
    assert exit_code(["import", str(file), "--out", str(tmp_path / "runs")]) == 1
    output = capsys.readouterr().out
    assert "of j0 (jepsen) was read at 2 offsets" in " ".join(output.split())


def test_folder_without_history_and_truncated_history_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(tmp_path / "runs")
    assert exit_code(["import", str(tmp_path), "--out", runs]) == 254
    assert "holds no history.edn" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "history.edn.gz").write_bytes(gzip.compress(SENT.encode())[:-20])
    assert exit_code(["import", str(tmp_path), "--out", runs]) == 254
    assert "cannot be unpacked" in " ".join(capsys.readouterr().err.split())


CLEAN = SENT.replace(" [1 1]", "")


def _store(tmp_path: Path, **histories: str) -> Path:
    """As Jepsen lays them out: a folder for each test, one for each run, and links to the last."""
    for name, text in histories.items():
        run = tmp_path / "store" / name / "20261122T230000"
        run.mkdir(parents=True)
        (run / "history.edn").write_text(text)
        (run / "results.edn").write_text("{:valid? true}")
        (run.parent / "latest").symlink_to(run.name)
    return tmp_path / "store"


def test_store_is_judged_with_one_line_for_each_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = _store(tmp_path, broken="{:type :ok", clean=CLEAN, doubled=SENT)
    runs = tmp_path / "runs"
    assert exit_code(["import", str(store), "--all", "--out", str(runs)]) == 254
    broken, clean, doubled = capsys.readouterr().out.splitlines()
    assert broken.startswith("ERROR")
    assert "history.edn: line 1, column 1: a { that is never closed" in broken
    assert clean.startswith(f"PASS     {store / 'clean' / '20261122T230000'}  -  {runs}")
    assert doubled.startswith("FAIL ")
    assert "duplicate 1" in doubled
    assert len(list(runs.glob("*/report.html"))) == 2


@pytest.mark.parametrize(
    ("histories", "code"),
    [({"a": CLEAN}, 0), ({"a": CLEAN, "b": SENT}, 1), ({"a": SENT, "b": CLEAN}, 1)],
)
def test_exit_code_of_a_store_is_the_worst_one(
    histories: dict[str, str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = _store(tmp_path, **histories)
    runs = str(tmp_path / "runs")
    assert exit_code(["import", str(store), "--all", "--json", "--out", runs]) == code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["history"] for line in lines] == [
        str(store / name / "20261122T230000") for name in histories
    ]


def test_store_without_a_history_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["import", str(tmp_path), "--all", "--out", str(tmp_path / "runs")]) == 254
    assert "holds no history.edn" in " ".join(capsys.readouterr().err.split())


def test_bokeh_is_loaded_only_for_pictures(tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text(CLEAN)
    asked = ["import", "h.edn", "--out", "runs"]
    code = f"""
import sys
from urteil.cli.main import exit_code
assert exit_code({asked}) == 0
assert not {{"bokeh", "kafka", "pyspark", "pandas", "docker"}} & sys.modules.keys()
assert exit_code({[*asked, "--pictures"]}) == 0
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    plain, drawn = sorted((tmp_path / "runs").glob("*/report.html"), key=lambda p: p.stat().st_size)
    assert "draws the timeline" in plain.read_text()
    assert "draws the timeline" not in drawn.read_text()
