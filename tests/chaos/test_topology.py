"""The plan of a cluster's network."""

from __future__ import annotations

import pytest

from urteil.chaos.loopback import Claim, LoopbackPlan
from urteil.chaos.observations import CLIENT, Link
from urteil.chaos.topology import Layout, Ports, node_id, node_name

PORTS = Ports(
    internal=1,
    client=2,
    zookeeper=3,
    peer=4,
    election=5,
    toxiproxy=6,
    metrics=7,
    users=8,
    controller=9,
)


def test_every_directed_link_has_one_plan() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=3, zookeepers=3)
    links = plan.links()
    assert len(links) == len(set(links)) == 3 * 2 + 3 * 3 + 3 * 2 + 3
    assert Link("b1", "b2") in links
    assert Link("b2", "b1") in links
    assert Link("zk1", "b1") not in links
    assert Link(CLIENT, "b3") in links


def test_addresses_of_proxies_and_nodes_are_distinct() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=9, zookeepers=5)
    listens = [proxy.listen for link in plan.links() for proxy in plan.proxies(link)]
    own = [f"{plan.address(node)}:{port}" for node in plan.nodes for port in range(1, 9)]
    apis = ["{}:{}".format(*plan.toxiproxy(node)) for node in plan.nodes]
    assert len(set(listens + own + apis)) == len(listens) + len(own) + len(apis)


def test_names_resolve_to_the_links_of_the_resolving_node() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1)
    hosts = dict(reversed(line.split()) for line in plan.hosts_file("b1").splitlines())
    proxy = plan.proxies(Link("b1", "b2"))[0]
    assert hosts["b1"] == plan.address("b1") == "127.77.1.1"
    assert proxy.listen == f"{hosts['b2']}:{PORTS.internal}"
    assert proxy.upstream == f"{plan.address('b2')}:{PORTS.internal}"
    assert hosts["zk1"] != plan.address("zk1")
    assert hosts["localhost"] == plan.address("b1")


def test_clients_have_links_of_their_own() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1)
    listens = [plan.proxies(Link(CLIENT, node))[0].listen for node in plan.brokers]
    assert listens == plan.bootstrap()


def test_first_broker_id_shifts_names_not_addresses() -> None:
    usual = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1)
    shifted = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1, layout=Layout(first_broker_id=0))
    assert shifted.brokers == ("b0", "b1")
    assert [shifted.address(node) for node in shifted.nodes] == [
        usual.address(node) for node in usual.nodes
    ]


def test_fixed_port_gives_consecutive_ports() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=2, zookeepers=2, layout=Layout(port=9092))
    assert plan.bootstrap() == ["127.0.0.1:9092", "127.0.0.1:9093"]
    assert [
        plan.proxies(Link(CLIENT, broker))[0].listen for broker in plan.brokers
    ] == plan.bootstrap()
    proxies = {proxy.upstream: proxy.listen for proxy in plan.entry_proxies(CLIENT)}
    assert proxies == {
        f"{plan.address(zookeeper)}:{PORTS.zookeeper}": "{}:{}".format(
            *plan.zookeeper_for_users(zookeeper)
        )
        for zookeeper in plan.zookeepers
    }
    assert sorted(proxies.values()) == ["127.0.0.1:9094", "127.0.0.1:9095"]
    assert [plan.metrics(broker) for broker in plan.brokers] == [
        ("127.0.0.1", 9096),
        ("127.0.0.1", 9097),
    ]


def test_secured_layout_leaves_the_lab_a_listener_of_its_own() -> None:
    layout = Layout(port=9092, secured=True)
    plan = LoopbackPlan(77, PORTS, brokers=1, zookeepers=1, layout=layout)
    assert plan.users_bootstrap() == ["127.0.0.1:9092"]
    assert plan.bootstrap() == [f"127.77.201.1:{PORTS.client}"]
    listens = [proxy.listen for proxy in plan.proxies(Link(CLIENT, "b1"))]
    assert listens == [*plan.bootstrap(), "127.0.0.1:9092"]


def test_concurrent_claims_get_different_networks() -> None:
    claims = [Claim() for _ in range(5)]
    try:
        assert len({claim.octet for claim in claims}) == 5
    finally:
        for claim in claims:
            claim.close()


def test_controllers_with_nodes_of_their_own_have_links() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=2, zookeepers=0, controllers=3)
    assert plan.controllers == plan.voters == plan.metadata_nodes == ("q1", "q2", "q3")
    links = plan.links()
    assert len(links) == len(set(links)) == 2 + 2 * 3 + 3 * 2 + 2
    assert {Link("b1", "q3"), Link("q1", "q2"), Link("q2", "q1")} <= set(links)
    assert not any(link.src in plan.controllers and link.dst in plan.brokers for link in links)
    assert plan.ports_of(Link("b1", "q3")) == plan.ports_of(Link("q1", "q2")) == (PORTS.controller,)
    assert plan.ports_of(Link("b1", "b2")) == (PORTS.internal,)
    voters = plan.quorum_voters().split(",")
    assert voters == [f"{1000 + n}@q{n}:{PORTS.controller}" for n in (1, 2, 3)]
    hosts = dict(reversed(line.split()) for line in plan.hosts_file("b1").splitlines())
    (proxy,) = plan.proxies(Link("b1", "q3"))
    assert proxy.listen == f"{hosts['q3']}:{PORTS.controller}"
    assert proxy.upstream == "{}:{}".format(*plan.direct_address("q3"))
    assert proxy.reads_frames


@pytest.mark.parametrize("node", ["b0", "b1", "b1000", "q1", "q5"])
def test_node_ids_identify_names(node: str) -> None:
    assert node_name(node_id(node)) == node


@pytest.mark.parametrize(("brokers", "zookeepers"), [(0, 1), (1, -1), (1, 100), (100, 1)])
def test_sizes_out_of_range_are_rejected(brokers: int, zookeepers: int) -> None:
    with pytest.raises(ValueError, match="1 to 99"):
        LoopbackPlan(77, PORTS, brokers=brokers, zookeepers=zookeepers)


def test_kraft_links_have_proxies_for_brokers_and_quorum() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=3, zookeepers=0)
    assert plan.ports_of(Link("b1", "b2")) == (PORTS.internal, PORTS.controller)
    assert plan.ports_of(Link("client", "b2")) == (PORTS.client,)
    voters = [f"{node}@b{node}:{PORTS.controller}" for node in (1, 2, 3)]
    assert plan.quorum_voters() == ",".join(voters)
    assert plan.zookeeper_connect() == ""
