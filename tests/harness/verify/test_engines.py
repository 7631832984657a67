"""Spark and DuckDB give the same results."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import ONE, copy_of, healthy, judged
from tests.harness.verify.histories import runs
from tests.waiting import until
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify import judge, synthetic
from urteil.harness.verify.damage import DAMAGES
from urteil.harness.verify.engines import cuts, spark
from urteil.harness.verify.engines.engine import Duck
from urteil.harness.verify.engines.rehearsal import rehearse
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import Result
from urteil.harness.verify.synthetic import END_NS, S


@pytest.fixture(autouse=True)
def _shared_answers() -> None:
    """Each judgement asks an engine of its own: that is what these tests compare."""


@pytest.fixture(scope="module")
def priorities() -> list[int]:
    """Of Spark's process while it starts: before a thread waits for it, and then."""
    return []


@pytest.fixture(scope="module")
def session(priorities: list[int]) -> Iterator[Any]:
    """Spark that starts in the background, and that a thread soon waits for."""
    warming = spark.warm()
    (source,) = until(spark.dump_sources, "Spark starts", poll_s=0.01)
    priority = partial(os.getpriority, os.PRIO_PROCESS, source.pid)
    until(lambda: priority() == spark.NICE or warming._session, "Spark starts apart", poll_s=0.01)
    priorities.append(priority())
    thread = os.getpriority(os.PRIO_PROCESS, warming._thread.native_id or 0)
    assert thread == os.getpriority(os.PRIO_PROCESS, 0), "it would hold the interpreter's lock"
    waiting = threading.Thread(target=warming.session)
    waiting.start()
    until(lambda: priority() == 0 or warming._session, "Spark's priority is ordinary", poll_s=0.01)
    priorities.append(spark.NICE if warming._session else priority())
    waiting.join()
    yield warming.session()
    warming.stop()


_OWN = ("engine", "engine_reason", "versions", "seconds", "phases")


def _comparable(result: Result) -> dict[str, Any]:
    """What both engines must agree on: all but their names, versions and the time it took."""
    values: dict[str, Any] = msgspec.to_builtins(result)
    return {name: value for name, value in values.items() if name not in _OWN}


@pytest.mark.spark_long
@pytest.mark.timeout(900)
def test_engines_agree_on_damaged_evidence(session: Any, tmp_path: Path) -> None:
    copy = copy_of(healthy())
    for damage in DAMAGES:
        damage(copy)
    facts = example_runs.two_partitions(synthetic.facts(ONE))
    facts.phases[2] = type(facts.phases[2])(name="after", begin_ns=1, end_ns=END_NS + 600 * S)
    sentences = {
        engine: _comparable(
            judged(
                tmp_path / engine,
                copy.tables,
                scenario=example_runs.damaged_scenario(),
                facts=facts,
                engine=engine,
                session=session,
            )
        )
        for engine in ("spark", "duckdb")
    }
    violated = {
        sentence["name"] for sentence in sentences["spark"]["guarantees"] if sentence["violations"]
    }
    assert violated == {name for name, guarantee in GUARANTEES.items() if not guarantee.never_fails}
    for left, right in zip(
        sentences["spark"]["guarantees"], sentences["duckdb"]["guarantees"], strict=True
    ):
        assert left == right
    assert sentences["spark"] == sentences["duckdb"]


@pytest.mark.spark_long
@pytest.mark.timeout(900)
def test_engines_agree_on_generated_histories(session: Any, tmp_path: Path) -> None:
    histories, rows, done = runs.damaged([11])
    results = {
        engine: runs.judged(tmp_path / engine, histories, rows, engine=engine, session=session)
        for engine in ("spark", "duckdb")
    }
    assert [str(damage) for damage in done if not runs.findings(results["spark"], damage)] == []
    for left, right in zip(results["spark"].guarantees, results["duckdb"].guarantees, strict=True):
        assert left == right
    assert _comparable(results["spark"]) == _comparable(results["duckdb"])


@pytest.mark.spark_long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("application", ["streams-count", "streams-join", "streams-windows"])
def test_both_engines_compute_the_same_results_of_an_application(
    application: str, session: Any, tmp_path: Path
) -> None:
    """An output that no input gives makes every computed result a finding or an opportunity."""
    tables = healthy()
    tables["outputs"] = [
        {"run": "r", "application": application, "sink": "results", "position": 0, "key": "ghost"}
        | {"value": "1", "partition": 0, "value_id": None, "timestamp_ms": None}
    ]
    scenario = synthetic.scenario(ONE)
    scenario = msgspec.structs.replace(scenario, workload=SCENARIOS[application].workload)
    results = {
        engine: judged(tmp_path / engine, tables, scenario=scenario, engine=engine, session=session)
        for engine in ("spark", "duckdb")
    }
    assert _comparable(results["spark"]) == _comparable(results["duckdb"])


def test_sums_stay_integers_on_duckdb() -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = Duck(Path(folder))
        engine.view("t", Path(folder) / "none", pa.schema([("a", pa.int64())]))
        engine.keep("s", "SELECT SUM(1) AS n, 7 DIV 2 AS half FROM t")
        assert engine.query("SELECT * FROM s") == [{"n": None, "half": 3}]
        engine.close()


def test_awaited_spark_starts_at_ordinary_priority(session: Any, priorities: list[int]) -> None:
    """Behind a machine's other work it did not start in two minutes."""
    assert priorities == [spark.NICE, 0]


@pytest.mark.spark_long
def test_rehearsal_reaches_its_end(session: Any) -> None:
    """It once raised at a shared table, which a warming session does not report."""
    rehearse(session.newSession(), threading.Event())


def test_spark_has_room_for_the_code_of_all_guarantees(session: Any) -> None:
    """The first compiler alone has 48 MB: of 10^6 sends a check raised."""
    started = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/cmdline").read_text()
    assert "-XX:TieredStopAtLevel=1\0-XX:ReservedCodeCacheSize=240m\0" in started


def test_parts_are_the_whole_whatever_is_cut(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(cuts, "PART_ROWS", 3)
    offsets = [None, 0, 0, 0, 0, 0, 7, 7, 2**62, -1]
    values = [f"v{number}" for number in range(9)] + [None]
    for column, ranges in (("offset", True), ("value_id", False)):
        engine = Duck(tmp_path / column)
        engine.table("t", pa.table({"offset": offsets, "value_id": values}))
        engine.store("SELECT * FROM t", tmp_path / "stored", cuts.Cut(("t",), column, ranges))
        files = sorted((tmp_path / "stored").glob("*.parquet"))
        assert len(files) > 2
        rows = sorted(map(str, pq.read_table(files).to_pylist()))
        assert rows == sorted(map(str, engine.query("SELECT * FROM t")))
        engine.close()


@pytest.mark.timeout(600)
def test_small_run_has_the_same_verdict_on_spark_and_duckdb(session: Any, tmp_path: Path) -> None:
    """The one run of the default tests that Spark judges, canary included."""
    synthetic.write_run(tmp_path, healthy(), synthetic.scenario(ONE), synthetic.facts(ONE))
    by_spark = judge(tmp_path, session=session)
    assert (by_spark.engine, by_spark.engine_reason) == ("spark", "the caller's session")
    by_duckdb = judge(tmp_path)
    assert by_duckdb.engine == "duckdb"
    assert _comparable(by_spark) == _comparable(by_duckdb)
