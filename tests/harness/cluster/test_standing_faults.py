"""Faults on a standing cluster end with their session, or at their expiry."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from tests.waiting import until
from urteil.chaos.observations import LabFailure
from urteil.cli.main import exit_code
from urteil.harness import standing
from urteil.harness.fault_server import FaultSession

NAME = "for-faults"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[standing.StandingCluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield standing.start_usual(name=NAME, brokers=3)
        standing.stop_standing(NAME)


def hold(*words: str) -> subprocess.Popen[str]:
    """A lab that holds a fault, which acts now."""
    argv = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "urteil",
        "faults",
        "hold",
        *words,
        "--cluster",
        NAME,
    ]
    lab = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert lab.stdout is not None
    assert " acts: " in lab.stdout.readline()
    return lab


def ended(lab: subprocess.Popen[str]) -> None:
    """Wait for a lab that is ending. If it hangs, its stacks are printed."""
    try:
        lab.wait(30)
    except subprocess.TimeoutExpired:
        lab.send_signal(signal.SIGABRT)
        lab.wait()
        raise


def paused(cluster: standing.StandingCluster, node: str) -> bool:
    return bool(psutil.Process(cluster.pids[node]).status() == psutil.STATUS_STOPPED)


def test_a_fault_ends_with_the_lab_that_was_killed(cluster: standing.StandingCluster) -> None:
    lab = hold("pause", "b2", "--for", "600")
    assert paused(cluster, "b2")
    lab.kill()
    lab.wait()
    until(lambda: not paused(cluster, "b2"))


def test_fault_of_a_hung_lab_ends_at_its_expiry(
    cluster: standing.StandingCluster,
) -> None:
    lab = hold("pause", "b3", "--for", "0.5")
    lab.send_signal(signal.SIGSTOP)
    until(lambda: not paused(cluster, "b3"))
    lab.kill()
    lab.wait()


def test_heal_all_heals_every_fault(
    cluster: standing.StandingCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = hold("pause", "b1", "--for", "600")
    assert exit_code(["heal", "--cluster", NAME]) == 0
    output = capsys.readouterr().out
    assert "pause: b1 is running" in output
    assert "healthy after" in output
    assert not paused(cluster, "b1")
    lab.send_signal(signal.SIGINT)
    ended(lab)


def test_faults_are_checked_on_a_standing_cluster(
    cluster: standing.StandingCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["reset", "pause", "unplug", "zookeeper_from_zookeeper"]
    code = exit_code(["faults", "check", *names, "--cluster", NAME, "--json"])
    reports = {row["fault"]: row for row in json.loads(capsys.readouterr().out)}
    assert reports["reset"]["acted"]
    assert reports["pause"]["healed"]
    assert "--runtime docker" in reports["unplug"]["why"]
    alone = reports["zookeeper_from_zookeeper"]
    assert not alone["acted"]
    assert "selects all ZooKeeper servers" in alone["proof"]
    assert code == 1


def test_client_without_key_plays_no_faults(cluster: standing.StandingCluster) -> None:
    with pytest.raises(LabFailure, match="rejects the connection"):
        FaultSession(cluster.fault_port, "00" * 16)


def test_status_shows_restarted_nodes(
    cluster: standing.StandingCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with standing.faults_on(NAME).fault("crash", "b1", expiry_s=60):
        assert exit_code(["cluster", "status", "--name", NAME]) == 0
        assert f"b1         pid {cluster.pids['b1']}, dead" in capsys.readouterr().out
    assert exit_code(["cluster", "status", "--name", NAME]) == 0
    output = capsys.readouterr().out
    assert "dead" not in output
    assert f"pid {cluster.pids['b1']}," not in output


def wire(*words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "urteil", "wire", "--cluster", NAME, *words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def connect(cluster: standing.StandingCluster) -> None:
    """A client that sends ApiVersions."""
    KafkaAdminClient(bootstrap_servers=cluster.bootstrap, client_id="wire-test").close()


@pytest.mark.thorough
def test_wire_prints_a_request_and_its_answer(cluster: standing.StandingCluster) -> None:
    watch = wire("--api", "ApiVersions", "--client", "wire-*", "--json", "--count", "2")
    until(lambda: connect(cluster) or watch.poll() is not None)
    assert watch.stdout is not None
    request, answer = map(json.loads, watch.stdout)
    assert watch.returncode == 0
    assert (request["direction"], answer["direction"]) == ("request", "answer")
    assert request["correlation_id"] == answer["correlation_id"]
    assert request["client_id"] == "wire-test"
    assert answer["message"]["error_code"] == 0
    assert answer["answered_in_ms"] > 0


@pytest.mark.thorough
def test_wire_without_a_match_names_what_passed(
    cluster: standing.StandingCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(cluster)
    words = ["wire", "--cluster", NAME, "--api", "EndTxn", "--seconds", "0.5"]
    assert exit_code(words) == 1
    assert re.search(
        r"no frame matched; these links carried .*ApiVersions", capsys.readouterr().err
    )


@pytest.mark.thorough
def test_held_rule_acts_after_a_match(
    cluster: standing.StandingCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["faults", "hold", "close_at", "client->all", "--cluster", NAME, "--for", "0.5"]
    assert exit_code([*words, "--api", "ApiVersions", "--client-id", "nobody"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert " waits: " in lines[0]
    assert "DID NOT ACT: no frame matched" in lines[1]
    argv = [sys.executable, "-m", "urteil", *words, "--api", "Metadata", "--times", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        lines = []
        while lab.poll() is None:
            with contextlib.suppress(KafkaError):
                connect(cluster)
        lines = lab.stdout.read().splitlines()
    assert lab.returncode == 0
    assert " waits: " in lines[0]
    assert " acts: " in lines[1]
    assert "close_at acted: " in lines[2]
