"""Whole runs over network namespaces: verdicts, a mutant, and SIGKILL of the lab in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from tests.waiting import until
from urteil.harness.evidence.journal import QUORUM_STATES
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
    return read_result(out)


def read_result(out: Path) -> Result:
    return msgspec.json.decode((out / "latest" / "result.json").read_bytes(), type=Result)


def await_fault(out: Path) -> None:
    until((out / "latest" / "faults.jsonl").exists, "no fault began", deadline_s=300.0)


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
    files = pq.read_table(run / "evidence" / "votes" / "quorum-files.parquet")
    assert files.num_rows >= len(nodes), "the state files of the hosts' quorum are evidence"
    assert len((run / QUORUM_STATES).read_text().splitlines()) > len(nodes)


def test_mutant_fails_by_its_own_guarantee(network: Network, tmp_path: Path) -> None:
    result = play(network, "leader-crash", tmp_path, "--mutant", "dead_replica_kept_in_isr")
    assert result.verdict == "FAIL"
    violated = {one.name for one in result.guarantees if one.violations}
    assert "dead_replica_in_isr" in violated


def test_nothing_is_left_after_sigkill_of_the_lab(network: Network, tmp_path: Path) -> None:
    lab = subprocess.Popen(run_words(network, "leader-crash", tmp_path), start_new_session=True)
    await_fault(tmp_path)
    assert any("urteil.broker" in command for command in network.commands())
    os.kill(lab.pid, signal.SIGKILL)
    lab.wait()
    network.await_nothing_left()


def test_two_labs_on_the_same_hosts_pass(network: Network, tmp_path: Path) -> None:
    outs = [tmp_path / "one", tmp_path / "two"]
    labs = [subprocess.Popen(run_words(network, "demo", out)) for out in outs]
    for lab in labs:
        lab.wait()
    network.await_nothing_left()
    results = [read_result(out) for out in outs]
    assert [(result.verdict, result.reasons) for result in results] == [("PASS", [])] * 2


def test_run_whose_host_dies_for_good_is_unknown(network: Network, tmp_path: Path) -> None:
    with subprocess.Popen(run_words(network, "leader-crash", tmp_path)) as lab:
        await_fault(tmp_path)
        network.hosts[2].set_link(up=False)
        lab.wait()
    others = replace(network, hosts=network.hosts[:2])
    others.await_nothing_left()
    network.hosts[2].set_link(up=True)
    network.await_nothing_left()
    result = read_result(tmp_path)
    assert result.verdict == "UNKNOWN"
    assert any("the host h3 " in reason and "is lost" in reason for reason in result.reasons)


def test_rolling_upgrade_of_apache_kafka_passes(network: Network, tmp_path: Path) -> None:
    result = play(network, "upgrade", tmp_path, "--target", "kafka")
    assert (result.verdict, result.reasons) == ("PASS", [])


def test_broker_has_a_clock_of_its_own(network: Network, tmp_path: Path) -> None:
    result = play(network, "clock-drift", tmp_path)
    assert (result.verdict, result.reasons) == ("PASS", [])
