"""PySpark reads and writes topics of our cluster, a broker's crash in the middle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import tools
from tests.conformance.side import Side
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

ROWS = 2000
TIMEOUT_S = 240
PARTITIONS = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(ClusterSpec(brokers=3), UrteilTarget(), tmp_path / "cluster") as cluster:
        yield cluster


@pytest.mark.spark_long
def test_stream_writes_each_row_once_despite_a_broker_crash(cluster: Cluster) -> None:
    """Whole micro-batches of a stream, written by idempotent producers: none lost, none twice."""
    side = Side("ours", cluster.bootstrap)
    for name in ("rows-in", "rows-out"):
        side.create(name, PARTITIONS)
    argv = [*tools.spark(), side.bootstrap, "rows", str(ROWS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            assert json.loads(program.stdout.readline()) == {"stream": "under way"}
            cluster.controls().kill("b2")
            rows = json.loads(program.stdout.readline())
            assert program.wait(TIMEOUT_S) == 0
        finally:
            program.kill()
    side.close()
    assert rows == {"written": [ROWS, ROWS], "streamed": [ROWS, ROWS]}
