"""The network plan of a cluster over hosts."""

from __future__ import annotations

import pytest

from urteil.chaos.loopback import HIGHEST_PORT, PORTS, LoopbackPlan
from urteil.chaos.observations import CLIENT, LabFailure, Link
from urteil.chaos.topology import Ports
from urteil.harness.runtimes.hosts.host_clock import Exchange, HostClock
from urteil.harness.runtimes.hosts.hosts_plan import BLOCKS, Block, HostsPlan, Place

LAB_PORTS = Ports(**{name: 30_000 + at for at, name in enumerate(PORTS)})
ADDRESSES = {"b1": "198.18.0.1", "b2": "198.18.0.2", "b3": "198.18.0.1", "zk1": "198.18.0.1"}


def plan(addresses: dict[str, str] = ADDRESSES, clock: HostClock | None = None) -> HostsPlan:
    brokers = sum(node.startswith("b") for node in addresses)
    beside_lab = LoopbackPlan(77, LAB_PORTS, brokers=brokers, zookeepers=len(addresses) - brokers)
    places = {
        node: Place(host="h1", address=address, host_name="alpha", clock=clock)
        for node, address in addresses.items()
    }
    return HostsPlan(Block(2), places, beside_lab=beside_lab)


def test_names_lead_through_the_proxies_beside_the_resolving_node() -> None:
    names = dict(reversed(line.split()) for line in plan().hosts_file("b1").splitlines())
    (proxy,) = plan().proxies(Link("b1", "b2"))
    port = plan().ports_at("b2").internal
    assert names["b1"] == names["localhost"] == names["alpha"] == "198.18.0.1"
    assert proxy.listen == f"{names['b2']}:{port}"
    assert names["b2"] == "127.18.1.2"
    assert proxy.upstream == f"198.18.0.2:{port}"


def test_each_listener_of_a_host_has_its_own_address() -> None:
    one = plan(dict.fromkeys([*ADDRESSES, "zk2", "zk3"], "198.18.0.1"))
    nodes = [*one.brokers, *one.zookeepers]
    listens = [proxy.listen for link in one.links() for proxy in one.proxies(link)]
    listens += [proxy.listen for node in nodes for proxy in one.entry_proxies(node)]
    listens += [
        f"{one.address(node)}:{getattr(one.ports_at(node), name)}"
        for node in nodes
        for name in PORTS
    ]
    assert len(set(listens)) == len(listens)


def test_ports_of_blocks_do_not_overlap() -> None:
    largest = plan({f"b{n}": "198.18.0.1" for n in range(1, 15)} | {"zk1": "198.18.0.1"})
    ports = [
        int(proxy.listen.rpartition(":")[2])
        for node in (*largest.brokers, *largest.zookeepers)
        for proxy in largest.entry_proxies(node)
    ]
    assert max(ports) < Block(3).first_port
    assert min(ports) > Block(2).first_port
    assert BLOCKS[-1].first_port + BLOCKS[-1].size <= HIGHEST_PORT
    assert BLOCKS[-1].octet < 250


def test_clients_are_beside_the_lab() -> None:
    one = plan()
    (proxy,) = one.proxies(Link(CLIENT, "b2"))
    assert one.lab_client_address("b2") == ("127.77.201.2", one.ports_at("b2").client)
    assert proxy.listen == "{}:{}".format(*one.lab_client_address("b2"))
    assert proxy.upstream == f"198.18.0.2:{one.ports_at('b2').client}"
    assert one.entry_proxies(CLIENT) == ()
    assert one.toxiproxy(CLIENT)[0].startswith("127.77.")


def test_lab_probes_a_link_by_an_entry() -> None:
    one = plan()
    address = "{}:{}".format(*one.link_address(Link("b1", "zk1")))
    entries = {proxy.listen: proxy for proxy in one.entry_proxies("b1")}
    assert entries[address].upstream == one.proxies(Link("b1", "zk1"))[0].listen
    assert entries[address].link is None


def test_metadata_nodes_are_reached_by_name_and_own_ports() -> None:
    one = plan({**ADDRESSES, "zk2": "198.18.0.2"})
    ports = {node: one.ports_at(node).zookeeper for node in ("zk1", "zk2")}
    assert one.zookeeper_connect() == f"zk1:{ports['zk1']},zk2:{ports['zk2']}"
    assert one.zookeeper_direct() == f"198.18.0.1:{ports['zk1']},198.18.0.2:{ports['zk2']}"


def test_controllers_are_reached_by_name_and_own_port() -> None:
    beside_lab = LoopbackPlan(77, LAB_PORTS, brokers=2, zookeepers=0, controllers=1)
    places = {
        node: Place(host="h1", address="198.18.0.1", host_name="alpha")
        for node in beside_lab.nodes
        if node != CLIENT
    }
    one = HostsPlan(Block(2), places, beside_lab=beside_lab)
    assert one.quorum_voters() == f"1001@q1:{one.ports_at('q1').controller}"
    assert one.direct_address("q1") == ("198.18.0.1", one.ports_at("q1").controller)


def test_too_many_nodes_are_rejected() -> None:
    with pytest.raises(LabFailure, match="at most 15 nodes, not 16"):
        plan({f"b{n}": "198.18.0.1" for n in range(1, 17)})


def test_host_of_a_node_is_the_inventorys() -> None:
    assert plan().host_of("b1") == "h1"
    assert plan().host_of(CLIENT) == ""


def test_times_of_another_machine_become_the_labs() -> None:
    clock = HostClock()
    clock.add(Exchange(sent_ns=100, received_ns=300, host_ns=5_200))
    assert plan(clock=clock).lab_time("b1", 5_260) == (260, 100)
    assert plan(clock=clock).lab_time(CLIENT, 5_260) == (5_260, 0)
    assert plan().lab_time("b1", 5_260) == (5_260, 0)
