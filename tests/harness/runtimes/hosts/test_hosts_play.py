"""Whole runs over network namespaces: verdicts, a mutant, and SIGKILL of the lab in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from tests.waiting import until
from urteil.harness.evidence.journal import QUORUM_STATES
from urteil.harness.evidence.readers.metadata_log import FOLDER
from urteil.harness.evidence.readers.quorum_votes import QUORUM_STATE
from urteil.harness.verify.result import Result

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network_of_hosts(tmp_path_factory.mktemp("hosts")) as network:
        yield network


def run_words(network: Network, scenario: str, out: Path, *more: str) -> list[str]:
    over_hosts = ["--runtime", "ssh", "--hosts", str(network.inventory)]
    judged = ["--seed", "7", "--engine", "duckdb", "--out", str(out)]
    return [sys.executable, "-m", "urteil", "run", scenario, *over_hosts, *judged, *more]


def play(network: Network, scenario: str, out: Path, *more: str) -> Result:
    subprocess.run(run_words(network, scenario, out, *more), check=False)
    network.await_nothing_left()
    return msgspec.json.decode((out / "latest" / "result.json").read_bytes(), type=Result)


@pytest.mark.parametrize("scenario", ["demo", "leader-crash", "isolate-broker"])
def test_healthy_cluster_passes(scenario: str, network: Network, tmp_path: Path) -> None:
    result = play(network, scenario, tmp_path)
    assert (result.verdict, result.reasons) == ("PASS", [])
    assert (tmp_path / "latest" / "logs" / "zk1.log").stat().st_size


@pytest.mark.parametrize(
    ("scenario", "nodes"), [("combined-leaders", ("b1",)), ("quorum-follower", ("b1", "q1"))]
)
def test_kraft_passes(
    scenario: str, nodes: tuple[str, ...], network: Network, tmp_path: Path
) -> None:
    result = play(network, scenario, tmp_path)
    assert (result.verdict, result.reasons) == ("PASS", [])
    run = tmp_path / "latest"
    for node in nodes:
        assert (run / "nodes" / node / "data" / FOLDER / QUORUM_STATE).exists()
    assert len((run / QUORUM_STATES).read_text().splitlines()) > len(nodes)


def test_mutant_fails_by_its_own_guarantee(network: Network, tmp_path: Path) -> None:
    result = play(network, "leader-crash", tmp_path, "--mutant", "dead_replica_kept_in_isr")
    assert result.verdict == "FAIL"
    violated = {one.name for one in result.guarantees if one.violations}
    assert "dead_replica_in_isr" in violated


def test_nothing_is_left_after_sigkill_of_the_lab(network: Network, tmp_path: Path) -> None:
    lab = subprocess.Popen(run_words(network, "leader-crash", tmp_path), start_new_session=True)
    until((tmp_path / "latest" / "faults.jsonl").exists, "no fault began", deadline_s=300.0)
    assert any("urteil.broker" in command for command in network.commands())
    os.kill(lab.pid, signal.SIGKILL)
    lab.wait()
    network.await_nothing_left()
