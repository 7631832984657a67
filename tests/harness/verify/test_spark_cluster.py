"""A standalone cluster of two workers gives the results of a session in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyspark
import pytest

from tests.harness.verify.example_runs import ONE, copy_of, healthy
from tests.waiting import until
from urteil.harness.dependencies.java import java
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import DAMAGES
from urteil.harness.verify.judgement import judge_run
from urteil.harness.verify.result import Result

HOME = Path(pyspark.__file__).parent
START_S = 120.0
JUDGE = """
import sys
from pathlib import Path
from urteil.harness.verify.engines import engine as engines, spark
from urteil.harness.verify.judgement import judge_run
spark.LARGE_ROWS, spark.PARTITIONS, engines.LOCAL_ROWS = 1, 2, 0
compiled = spark.compile_plans
spark.compile_plans = lambda session, on: compiled(session, False)
judge_run(Path(sys.argv[1]), engine="spark", master=sys.argv[2], session=None, canary=False)
"""
"""As a large run, so that tables are read from the shared path and shuffled between workers, but
interpreted: compiling a hundred plans for a few rows takes minutes of two slow cores."""


class Cluster:
    """A master and its workers, processes of Spark's own, on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        home = Path(java()).resolve().parent.parent
        self.env = os.environ | {
            "JAVA_HOME": str(home),
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_CONF_DIR": str(folder),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        (folder / "spark-defaults.conf").write_text(
            "spark.executor.memory 512m\n"
            "spark.executor.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1\n"
        )

    def start(self, name: str, *arguments: str) -> Path:
        """Start a daemon; its log."""
        log = self.folder / f"{name}.log"
        command = [str(HOME / "bin" / "spark-class"), *arguments]
        with log.open("wb") as said:
            process = subprocess.Popen(command, env=self.env, stdout=said, stderr=said)
        self._processes.append(process)
        return log

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(30)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Cluster, str]]:
    """A cluster of two workers with a core each, and its master's URL."""
    folder = tmp_path / "spark"
    folder.mkdir()
    spark = Cluster(folder)
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    deploy = "org.apache.spark.deploy"
    try:
        log = spark.start("master", f"{deploy}.master.Master", *here)
        url = until(lambda: re.search(r"Starting Spark master at (spark://\S+)", log.read_text()))
        for name in ("worker1", "worker2"):
            worker = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name))
            spark.start(name, f"{deploy}.worker.Worker", *here, *worker, url[1])
        until(lambda: log.read_text().count("Registering worker") == 2)
        yield spark, url[1]
    finally:
        spark.stop()


@pytest.mark.spark_long
@pytest.mark.timeout(300)
def test_two_workers_agree_with_one_process(cluster: tuple[Cluster, str], tmp_path: Path) -> None:
    spark, url = cluster
    run = tmp_path / "run"
    copy = copy_of(healthy())
    for damage in DAMAGES[::8]:
        damage(copy)
    synthetic.write_run(run, copy.tables, synthetic.scenario(ONE), synthetic.facts(ONE))
    here = judge_run(run, engine="duckdb", master=None, session=None, canary=False)
    command = [sys.executable, "-c", JUDGE, str(run), url]
    done = subprocess.run(command, env=spark.env, capture_output=True, text=True, timeout=270)
    assert done.returncode == 0, done.stderr[-2000:]
    there = msgspec.json.decode((run / "result.json").read_bytes(), type=Result)
    assert there.engine == "spark"
    assert any(guarantee.violations for guarantee in here.guarantees)
    assert there.guarantees == here.guarantees
    assert (there.verdict, there.reasons) == (here.verdict, here.reasons)
    busy = {name for name in ("worker1", "worker2") if _tasks(spark.folder / name)}
    assert busy == {"worker1", "worker2"}, "both workers had a part"
    assert not (run / "work").exists() or not any((run / "work").iterdir())


def _tasks(worker: Path) -> int:
    """Tasks that a worker's executors ran, by their logs."""
    return sum(log.read_text().count("Finished task") for log in worker.glob("app-*/*/stderr"))
