"""Clients on hosts: started, signalled, and their journals here when they end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.harness.runtimes.hosts.namespaces import Network, network_of_hosts
from tests.waiting import until
from urteil.chaos.links import Links
from urteil.chaos.observations import CLIENT, Link
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.processes import Clients, spawn_process
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.cluster.toxiproxy_nodes import Toxiproxies
from urteil.harness.evidence.journal import Begin, JournalReader
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.runtimes.ssh import SshRuntime
from urteil.harness.scenario import TopicFact, WorkloadSpec

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]
FETCH = (
    "import sys, urllib.request as u; "
    "u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=9)"
)
TOPIC = TopicFact(name="t", topic_id="", partitions=1, replication_factor=1)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with network_of_hosts(tmp_path_factory.mktemp("hosts"), count=2) as network:
        yield network
        network.await_nothing_left()


@pytest.fixture
def runtime(network: Network, tmp_path: Path) -> Iterator[SshRuntime]:
    runtime = SshRuntime(
        tmp_path, inventory=network.inventory, brokers=1, zookeepers=1, client_hosts=["h2"]
    )
    yield runtime
    runtime.close()


def start(runtime: SshRuntime, run_dir: Path, name: str = "p1") -> Clients:
    """A producer that finds no broker."""
    kind = client_kinds()["producer"]
    clients = Clients(run_dir, spawn_process, runtime.clients_elsewhere)
    spec = ClientSpec(
        run="r", client=name, session=1, kind=kind.name, bootstrap=("127.0.0.1:1",),
        journal=str(run_dir / "journal" / f"{name}.jsonl"), topics=(TOPIC,),
        workload=WorkloadSpec(), rate_records_per_s=10.0,
    )  # fmt: skip
    clients.prepare(name, kind)
    clients.start(spec, kind)
    until(lambda: entries(run_dir, name))
    return clients


def entries(run_dir: Path, name: str = "p1") -> list[msgspec.Struct]:
    path = run_dir / "journal" / f"{name}.jsonl"
    return list(JournalReader(path)) if path.exists() else []


def test_client_is_paused_stopped_and_its_journal_is_complete(
    runtime: SshRuntime, network: Network, tmp_path: Path
) -> None:
    clients = start(runtime, tmp_path)
    assert isinstance(entries(tmp_path)[0], Begin)
    assert any("clients.producers" in command for command in network.hosts[1].commands())
    clients.send_signal("p1", signal.SIGSTOP)
    assert clients.state("p1")[1:] == (None, True)
    clients.send_signal("p1", signal.SIGCONT)
    assert clients.state("p1")[1:] == (None, False)
    assert clients.dump_sources(["p1"]) == []
    assert clients.terminate(["p1"], 60.0) == []
    reader = JournalReader(tmp_path / "journal" / "p1.jsonl")
    assert list(reader)
    assert reader.state.end_ns is not None
    assert clients.failures() == []
    assert runtime.unexpected_ends() == []


def test_killed_client_leaves_its_journal(runtime: SshRuntime, tmp_path: Path) -> None:
    clients = start(runtime, tmp_path)
    assert clients.kill("p1")
    assert entries(tmp_path)
    assert clients.failures() == []


def test_problem_names_the_client_of_a_lost_host(network: Network, tmp_path: Path) -> None:
    runtime = SshRuntime(
        tmp_path, inventory=network.inventory, brokers=1, zookeepers=1, client_hosts=["h2"]
    )
    clients = start(runtime, tmp_path)
    network.hosts[1].end_connections()
    until(lambda: clients.failures())
    assert "client p1 ended with exit code 255" in clients.failures()[0]
    clients.kill_all()
    with pytest.raises(Exception, match=r"client-p1 did not come back: the host h2 .* is lost"):
        runtime.close()


def test_advertised_address_leads_through_the_clients_proxy_on_their_host(
    runtime: SshRuntime, network: Network, tmp_path: Path
) -> None:
    """From the lab and from the host for clients alike. A fault on the link ends both."""
    address, port = runtime.plan.direct_address("b1")
    argv = [runtime.programs.python(), "-m", "http.server", "--bind", address, str(port)]
    folder = tmp_path / "nodes" / "b1"
    folder.mkdir(parents=True)
    runtime.start("b1", NodeSpec(argv=argv, cwd=folder))
    links = Links(runtime.plan, Toxiproxies(runtime, tmp_path))
    links.start()
    url = "http://{}:{}/".format(*runtime.plan.lab_client_address("b1"))
    on_host = ["ip", "netns", "exec", network.hosts[1].name, sys.executable, "-c", FETCH, url]

    def fetches() -> list[bool]:
        return [
            subprocess.run(argv, capture_output=True, check=False).returncode == 0
            for argv in ([sys.executable, "-c", FETCH, url], on_host)
        ]

    until(lambda: fetches() == [True, True])
    links.close([Link(CLIENT, "b1")])
    assert fetches() == [False, False]
    links.heal([Link(CLIENT, "b1")])
    assert fetches() == [True, True]


def test_links_of_clients_begin_on_their_host(runtime: SshRuntime, network: Network) -> None:
    plan = runtime.plan
    assert plan.host_of(CLIENT) == "h2"
    assert plan.toxiproxy(CLIENT)[0] == network.hosts[1].address
    (forward,) = plan.client_forwards()
    address, port = plan.lab_client_address("b1")
    assert forward.listen == f"{address}:{port}"
    assert runtime.packets is not None
    assert runtime.packets.crossing_links([Link(CLIENT, "b1")]) == [Link(CLIENT, "b1")]
