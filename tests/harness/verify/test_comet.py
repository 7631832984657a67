"""Comet's operators give the results of Spark's own, in a process with its own JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pyspark
import pytest

from tests.harness.verify.example_runs import ONE, copy_of, healthy
from tests.harness.verify.histories import runs
from urteil.harness.dependencies import comet
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import DAMAGES
from urteil.harness.verify.engines import comet as verify_comet
from urteil.harness.verify.engines import spark
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result

LARGE = """
import json, sys
from pathlib import Path
from urteil.harness.verify import shared_tables
from urteil.harness.verify.engines import engine as engines, spark
spark.LARGE_ROWS, spark.PARTITIONS, engines.LOCAL_ROWS = 1, 2, 0
compiled = spark.compile_plans
spark.compile_plans = lambda session, on: compiled(session, False)
"""
"""As a large run; what is left to Spark is interpreted: compiling a hundred plans for a few rows
takes minutes of two slow cores."""

JUDGE = f"""{LARGE}
from urteil.harness.verify.judgement import judge_run
judge_run(Path(sys.argv[1]), engine="spark", master=None, session=None, canary=False)
"""

EXPLAIN = f"""{LARGE}
from urteil.harness.scenario import load_facts, load_scenario
from urteil.harness.verify.judgement import prepare
run, work = Path(sys.argv[1]), Path(sys.argv[2])
derived = prepare(run, load_scenario(run), load_facts(run))
engine = engines.open_engine("spark", run, work)
engines.open_views(engine, run, derived)
print(json.dumps(engine._session._jsc.sc().conf().get("spark.driver.memory")))
print(json.dumps(engine.versions))
for name in ("slots", "records"):
    query = shared_tables.stage(name, engine)
    found = engine._session.sql(query)._jdf.queryExecution().executedPlan().toString()
    print(json.dumps([line.strip(" :+-*()0123456789").split()[0] for line in found.splitlines()]))
    engine.keep(name, query)
engine.close()
"""


def _child(script: str, *arguments: object) -> list[str]:
    argv = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.spark_long
def test_the_fused_plan_is_native_from_its_files_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    synthetic.write_run(run, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    heap, versions, *plans = map(json.loads, _child(EXPLAIN, run, tmp_path / "work"))
    assert heap == "1g"
    assert versions == {"spark": pyspark.__version__, "comet": comet.VERSION}
    for operators in plans:
        assert "CometHashAggregate" in operators
        assert "CometNativeScan" in operators
        left = {name for name in operators if not name.startswith("Comet")}
        assert left == {"AdaptiveSparkPlan"}, "the rest of the plan is Spark's own"


def test_large_run_without_comet_uses_spark_operators_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Path:
        raise MissingDependency("comet", "install Maven")

    monkeypatch.setattr(comet, "comet_jar", missing)
    monkeypatch.delenv("URTEIL_SPARK_MEMORY", raising=False)
    settings = spark._settings(tmp_path, "local[2]", None, spark.LARGE_ROWS)
    assert not verify_comet.are_in(settings)
    assert settings["spark.driver.memory"] == spark.HEAP
    session = SimpleNamespace(conf=settings)
    assert verify_comet.versions(session) == {"comet": "not used: comet is missing: install Maven"}


@pytest.mark.spark_long
@pytest.mark.timeout(900)
def test_native_operators_agree_with_duckdb_on_damaged_evidence(
    tmp_path: Path,
) -> None:
    copy = copy_of(healthy())
    for damage in DAMAGES:
        damage(copy)
    run = tmp_path / "run"
    synthetic.write_run(run, copy.tables, synthetic.scenario(ONE), synthetic.facts(ONE))
    _same_as_duckdb(run)


@pytest.mark.spark_long
@pytest.mark.timeout(900)
def test_native_operators_agree_with_duckdb_on_generated_histories(tmp_path: Path) -> None:
    histories, rows, _ = runs.damaged([12])
    run = tmp_path / "run"
    synthetic.write_run(run, rows, runs.scenario(histories), runs.facts(histories))
    _same_as_duckdb(run)


def _same_as_duckdb(run: Path) -> None:
    here = judge_run(run, engine="duckdb", master=None, session=None, canary=False)
    _child(JUDGE, run)
    there = msgspec.json.decode((run / "result.json").read_bytes(), type=Result)
    assert there.engine == "spark"
    assert sum(guarantee.violations for guarantee in here.guarantees) > 20
    for native, duck in zip(there.guarantees, here.guarantees, strict=True):
        assert native == duck
    assert (there.verdict, there.reasons) == (here.verdict, here.reasons)
