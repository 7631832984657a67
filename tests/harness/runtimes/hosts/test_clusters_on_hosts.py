"""Standing clusters and the pytest plugin over network namespaces."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from tests.waiting import until
from urteil.harness import standing
from urteil.harness.standing.cluster_state import state_of

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
NAME = "on-hosts"
LEADER_CRASH = """
def test_leader_crash(urteil_cluster, urteil_nemesis, urteil_history):
    urteil_cluster.create_topic("orders", partitions=3, replication_factor=3)
    with urteil_history.load("orders", rate=100):
        with urteil_nemesis.fault("crash", "leader", topic="orders"):
            pass
    result = urteil_history.judge()
    assert result.verdict == "PASS", result.reasons
"""

FAILING = """
def test_it(urteil_cluster):
    urteil_cluster.create_topic("orders", replication_factor=1)
    assert urteil_cluster.bootstrap_servers == []
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network_of_hosts(tmp_path_factory.mktemp("hosts")) as network:
        yield network


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def cluster(network: Network) -> Iterator[str]:
    """The text of `urteil cluster up`."""
    over_hosts = ("--runtime", "ssh", "--hosts", str(network.inventory))
    yield urteil("cluster", "up", "--name", NAME, *over_hosts)
    network.await_nothing_left()


def urteil(*words: str) -> str:
    argv = [sys.executable, "-m", "urteil", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def status(name: str = NAME) -> str:
    return urteil("cluster", "status", "--name", name)


def pytest_in(project: Path, network: Network, *options: str) -> subprocess.CompletedProcess[str]:
    over_hosts = ["--urteil-runtime", "ssh", "--urteil-hosts", str(network.inventory)]
    argv = [sys.executable, "-m", "pytest", "-q", *over_hosts, *options]
    return subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)


def test_standing_cluster_runs_until_it_is_taken_down(cluster: str) -> None:
    assert re.search(r"^b2 +pid \d+ on h2, lives$", cluster, re.M), cluster
    document = json.loads(urteil("cluster", "status", "--name", NAME, "--json"))
    producer = KafkaProducer(bootstrap_servers=document["bootstrap"], acks="all")
    assert producer.send("orders", b"an order").get(timeout=30).offset == 0
    producer.close()
    with standing.faults_on(NAME).fault("crash", "b2", expiry_s=60.0):
        assert re.search(r"^b2 +pid \d+ on h2, dead$", status(), re.M)
    assert re.search(r"^b2 +pid \d+ on h2, lives$", status(), re.M)
    urteil("cluster", "down", "--name", NAME)


def test_cluster_of_kraft_stands_with_its_state(network: Network) -> None:
    over_hosts = ("--runtime", "ssh", "--hosts", str(network.inventory))
    urteil("cluster", "up", "--name", NAME, *over_hosts, "--target", "kafka:4.4.0")
    state = state_of(standing.status(NAME))
    former = state.controller()
    with standing.faults_on(NAME).fault("crash", "quorum_leader", expiry_s=60.0) as crash:
        assert list(crash.targets) == [former]
        until(lambda: state.controller() not in (former, None))
    state.close()
    urteil("cluster", "down", "--name", NAME)
    network.await_nothing_left()


@pytest.mark.usefixtures("cluster")
def test_standing_cluster_ends_with_its_keeper() -> None:
    os.kill(standing.status(NAME).keeper, signal.SIGKILL)


@pytest.mark.usefixtures("cluster")
def test_nodes_of_a_lost_host_are_dead(network: Network) -> None:
    network.hosts[1].end_connections()
    until(lambda: re.search(r"^b2 .* on h2, dead$", status(), re.M))
    assert re.search(r"^b1 .* on h1, lives$", status(), re.M)
    urteil("cluster", "down", "--name", NAME)


def test_plugin_plays_a_fault_on_hosts_and_judges(network: Network, tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(LEADER_CRASH)
    done = pytest_in(tmp_path, network, "--urteil-engine", "duckdb")
    assert done.returncode == 0, done.stdout + done.stderr
    network.await_nothing_left()


def test_cluster_of_a_failed_test_is_left_standing(network: Network, tmp_path: Path) -> None:
    (tmp_path / "test_fails.py").write_text(FAILING)
    done = pytest_in(tmp_path, network, "--urteil-keep", "--urteil-brokers", "1")
    left = re.search(r"urteil cluster status --name (\S+)", done.stdout)
    assert left is not None, done.stdout + done.stderr
    assert re.search(r"^b1 +pid \d+ on h1, lives$", status(left[1]), re.M)
    urteil("cluster", "down", "--name", left[1])
    network.await_nothing_left()
