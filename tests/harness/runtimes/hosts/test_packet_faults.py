"""Faults of the packet filter over network namespaces: they act, heal, and end with the lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from tests.waiting import until
from urteil.chaos.observations import LabFailure, Link
from urteil.harness.runtimes.hosts.agent import SILENCE_S
from urteil.harness.runtimes.ssh import SshRuntime

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
NAME = "packets"
GONE_S = 5.0
"""Of the rules, after the death of the lab."""
assert GONE_S < SILENCE_S
LAB = """
import sys, time
from pathlib import Path
from urteil.chaos.observations import Link
from urteil.harness.runtimes.ssh import SshRuntime

runtime = SshRuntime(Path(sys.argv[1]), inventory=Path(sys.argv[2]), brokers=3, zookeepers=1)
runtime.packets.drop([Link("b1", "b2"), Link("b2", "b3")], percent=30, owner="packet_loss_1")
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network_of_hosts(tmp_path_factory.mktemp("hosts")) as network:
        yield network


def with_rules(network: Network) -> list[str]:
    """The hosts whose packet filters have rules."""
    return [host.name[-2:] for host in network.hosts if host.filter_rules()]


def test_rules_stand_on_receiving_hosts_until_healing(network: Network, tmp_path: Path) -> None:
    runtime = SshRuntime(tmp_path, inventory=network.inventory, brokers=4, zookeepers=3)
    packets = runtime.packets
    assert packets is not None
    links = [Link("b1", "b2"), Link("b1", "b4"), Link("client", "b1"), Link("b1", "zk1")]
    assert packets.crossing_links(links) == links[:1]
    assert packets.disturbed_by(links[:1]) == [Link("b1", "b2"), Link("b2", "b1"), Link("b4", "b2")]
    packets.drop(links[:1], owner="packet_cut_1")
    packets.drop([Link("b2", "zk3")], percent=20, owner="packet_loss_2")
    assert with_rules(network) == ["h2", "h3"]
    assert packets.counts(owner="packet_cut_1")["b1->b2"].lost == 0
    packets.restore(owner="packet_cut_1")
    assert packets.counts(owner="packet_cut_1") == {}
    assert with_rules(network) == ["h3"]
    packets.restore(owner="packet_cut_1")
    runtime.close()
    network.await_nothing_left()


def test_rules_end_with_sigkill_of_the_lab(network: Network, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", LAB, str(tmp_path), str(network.inventory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as lab:
        assert lab.stdout is not None
        assert lab.stdout.readline() == b"up\n"
        assert with_rules(network) == ["h2", "h3"]
        os.kill(lab.pid, signal.SIGKILL)
        lab.wait()
        until(lambda: not with_rules(network), "no rules", deadline_s=GONE_S)
        network.await_nothing_left()


def test_rules_end_with_sigkill_of_the_agent(network: Network, tmp_path: Path) -> None:
    runtime = SshRuntime(tmp_path, inventory=network.inventory, brokers=2, zookeepers=1)
    assert runtime.packets is not None
    runtime.packets.drop([Link("b1", "b2")], reject=True, owner="packet_cut_1")
    assert with_rules(network) == ["h2"]
    for pid in network.hosts[1].pids_of("hosts.agent"):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not with_rules(network), "no rules", deadline_s=GONE_S)
    with pytest.raises(LabFailure, match=r"the host h2 .* is lost"):
        runtime.packets.restore(owner="packet_cut_1")
    runtime.close()
    network.await_nothing_left()


def test_faults_act_and_heal(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    over_hosts = ("--runtime", "ssh", "--hosts", str(network.inventory))
    urteil("cluster", "up", "--name", NAME, *over_hosts)
    checks = json.loads(
        urteil("faults", "check", "packet_cut", "packet_loss", "--cluster", NAME, "--json")
    )
    urteil("cluster", "down", "--name", NAME)
    assert [(check["acted"], check["healed"]) for check in checks] == [(True, True)] * 2, checks
    assert "silent for" in checks[0]["proof"]
    assert "packets lost" in checks[1]["proof"]
    network.await_nothing_left()


def urteil(*words: str) -> str:
    argv = [sys.executable, "-m", "urteil", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.stdout
