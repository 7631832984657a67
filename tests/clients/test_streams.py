"""Kafka Streams counts exactly once on our cluster, a broker's crash in the middle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import tools
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

LINES = 700
WORDS = 7
TIMEOUT_S = 240


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(ClusterSpec(brokers=3), UrteilTarget(), tmp_path / "cluster") as cluster:
        yield cluster


@pytest.mark.thorough
def test_stream_counts_each_line_once_despite_a_broker_crash(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Through a repartitioned topic, and stores that are thrown away and come back from their
    changelogs: each word's counts are 1, 2, 3 and so on, in what is committed."""
    argv = [*tools.streams(), ",".join(cluster.bootstrap), "words", str(LINES), str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            assert json.loads(program.stdout.readline()) == {"stream": "under way"}
            cluster.controls().kill("b2")
            counts = json.loads(program.stdout.readline())
            assert program.wait(TIMEOUT_S) == 0
        finally:
            program.kill()
    in_order = list(range(1, LINES // WORDS + 1))
    assert counts == {f"word{n}": in_order for n in range(WORDS)}
