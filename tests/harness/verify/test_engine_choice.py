"""`--engine auto`: the engine that it chooses for a run, and the reason."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import psutil
import pytest

from tests.harness.verify.example_runs import ONE, healthy
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify import judge, synthetic
from urteil.harness.verify.engines import choice
from urteil.harness.verify.engines.choice import choose, file_system, needs_spark
from urteil.harness.verify.result import load_result
from urteil.reports.markdown import summary

ROWS = 5 * ONE.records
"""The rows of sends, reads and replicas in the synthetic run."""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    return tmp_path


def count_rows(run_dir: Path) -> int:
    return int(choose("auto", run_dir).reason.split()[0].replace(",", ""))


def set_mounts(monkeypatch: pytest.MonkeyPatch, *mounts: tuple[Path, str]) -> None:
    table = [SimpleNamespace(mountpoint=str(path), fstype=kind) for path, kind in mounts]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: table if all else [])


def test_small_run_on_this_machine_is_judged_by_duckdb(run_dir: Path) -> None:
    engine, reason = choose("auto", run_dir)
    assert engine == "duckdb"
    assert reason.endswith("rows of evidence, Spark from 60,000,000")
    assert count_rows(run_dir) >= ROWS


def test_spark_judges_from_the_row_threshold_on(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = count_rows(run_dir)
    monkeypatch.setattr(choice, "SPARK_ROWS", rows + 1)
    assert choose("auto", run_dir).engine == "duckdb"
    monkeypatch.setattr(choice, "SPARK_ROWS", rows)
    reason = f"{rows:,} rows of evidence, DuckDB below {rows:,}"
    assert choose("auto", run_dir) == ("spark", reason)


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_requested_engine_is_chosen_for_every_run(engine: str, run_dir: Path) -> None:
    for declared in ("auto", "spark"):
        assert choose(engine, run_dir, declared=declared) == (engine, "requested")


def test_master_is_allowed_with_engine_spark_and_rejected_with_duckdb(run_dir: Path) -> None:
    master = "spark://other:7077"
    assert choose("spark", run_dir, master=master) == ("spark", "requested")
    with pytest.raises(ValueError, match=f"leave out --master {master}, or use --engine spark"):
        choose("duckdb", run_dir, master=master)


def test_master_chooses_spark(run_dir: Path) -> None:
    decision = choose("auto", run_dir, master="spark://other:7077", declared="duckdb")
    assert decision == ("spark", "--master spark://other:7077")


def test_session_of_the_caller_is_used(run_dir: Path) -> None:
    assert choose("auto", run_dir, session=object()) == ("spark", "the caller's session")


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_scenario_may_declare_its_engine(engine: str, run_dir: Path) -> None:
    decision = choose("auto", run_dir, declared=engine, scenario="bulk")
    assert decision == (engine, "the scenario bulk declares it")


def test_only_bulk_is_judged_by_spark_whatever_its_rows() -> None:
    declared = {
        name: scenario.engine for name, scenario in SCENARIOS.items() if scenario.engine != "auto"
    }
    assert declared == {"bulk": "spark"}


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "ceph", "fuse.s3fs", "fuse.juicefs", "fuse.x"])
def test_evidence_on_another_machine_is_judged_by_spark(
    kind: str, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_mounts(monkeypatch, (Path("/"), "ext4"), (run_dir, kind))
    assert choose("auto", run_dir) == ("spark", f"the evidence is on {kind}")


@pytest.mark.parametrize("kind", ["ext4", "overlay", "9p", "tmpfs", "fuse.fuse-overlayfs", ""])
def test_evidence_on_this_machine_is_judged_by_duckdb(
    kind: str, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_mounts(monkeypatch, (Path("/"), "nfs4"), (run_dir, kind))
    assert choose("auto", run_dir).engine == "duckdb"


def test_link_to_another_machine_is_followed(
    run_dir: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = tmp_path_factory.mktemp("bucket")
    (run_dir / "evidence").rename(bucket / "evidence")
    (run_dir / "evidence").symlink_to(bucket / "evidence")
    set_mounts(monkeypatch, (Path("/"), "ext4"), (bucket, "fuse.gcsfuse"))
    assert choose("auto", run_dir).engine == "spark"


def test_later_mount_on_the_same_path_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_mounts(monkeypatch, (tmp_path, "ext4"), (tmp_path, "nfs4"), (Path("/"), "tmpfs"))
    assert file_system(tmp_path / "run") == "nfs4"


def test_mount_table_of_this_machine_names_a_file_system(tmp_path: Path) -> None:
    assert file_system(tmp_path)


def test_duckdb_judges_a_large_run_without_spark_with_a_reason(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "SPARK_ROWS", 1)
    monkeypatch.setattr(choice, "pyspark_folder", lambda: None)
    engine, reason = choose("auto", run_dir)
    assert engine == "duckdb"
    assert reason.startswith("Spark is not installed; it would judge: ")
    assert not needs_spark("auto", master=None, declared="spark")


def test_damaged_evidence_is_judged_by_duckdb(run_dir: Path) -> None:
    for file in (run_dir / "evidence").rglob("*.parquet"):
        file.write_bytes(b"no Parquet")
    assert choose("auto", run_dir).engine == "duckdb"


def test_unknown_engine_is_rejected(run_dir: Path) -> None:
    for arguments in ({"requested": "flink"}, {"requested": "auto", "declared": "flink"}):
        with pytest.raises(ValueError, match="no engine named flink: auto, duckdb, spark"):
            choose(run_dir=run_dir, **arguments)


@pytest.mark.parametrize(
    ("requested", "master", "declared", "early"),
    [
        ("spark", None, "auto", True),
        ("auto", "local[4]", "auto", True),
        ("auto", None, "spark", True),
        ("auto", None, "auto", False),
        ("duckdb", "local[4]", "spark", False),
    ],
)
def test_spark_starts_under_the_load_only_when_it_will_judge(
    requested: str, master: str | None, declared: str, early: bool
) -> None:
    assert needs_spark(requested, master=master, declared=declared) is early


@pytest.mark.usefixtures("few")
def test_result_and_summary_name_the_engine_and_its_reason(run_dir: Path) -> None:
    result: Any = judge(run_dir)
    rows = count_rows(run_dir)
    reason = f"{rows:,} rows of evidence, Spark from 60,000,000"
    assert (result.engine, result.engine_reason) == ("duckdb", reason)
    assert msgspec.json.encode(load_result(run_dir)) == msgspec.json.encode(result)
    assert f"Judged by duckdb: {reason}" in summary(run_dir)
