"""Faults of the network disturb the links that they name, and no others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.paper import PaperCluster
from tests.chaos.paper_faults import arguments
from tests.waiting import until
from urteil.chaos.faults import FAULTS
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import Link, NodeState, Transfer

VOTERS = tuple(f"q{number}" for number in range(1, 6))


def test_slices_of_each_link_may_show_in_different_measurements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = PaperCluster()
    measure, measured = cluster.net.measure_transfer, Counter[Link]()

    def measure_slowly(link: Link, **options: Any) -> Transfer:
        """The slices of the first link are seen once, those of the others afterwards."""
        transfer, sliced = measure(link, **options), bool(cluster.net.degraded)
        measured[link] += sliced
        is_visible = (measured[link] == 1) == (link == cluster.net.links()[0])
        return transfer if is_visible else replace(transfer, pieces=1)

    monkeypatch.setattr(cluster.net, "measure_transfer", measure_slowly)
    assert FAULTS["slices"](arguments("all")).begin(cluster).acted


def test_one_way_partition_cuts_only_the_followers_fetches() -> None:
    cluster = PaperCluster()
    FAULTS["partition"](arguments("followers->leader")).begin(cluster)
    assert cluster.net.broken == {Link("b1", "b2"), Link("b3", "b2")}


def test_two_way_partition_cuts_both_directions() -> None:
    for fault in (arguments("b1<->b2"), arguments("b1->b2", direction="two-way")):
        cluster = PaperCluster()
        FAULTS["partition"](fault).begin(cluster)
        assert cluster.net.broken == {Link("b1", "b2"), Link("b2", "b1")}


def test_isolation_includes_zookeeper_and_clients_by_option() -> None:
    cluster = PaperCluster()
    FAULTS["isolate"](arguments("b3")).begin(cluster)
    brokers = {Link("b3", "b1"), Link("b3", "b2"), Link("b1", "b3"), Link("b2", "b3")}
    assert cluster.net.broken == brokers
    cluster = PaperCluster()
    FAULTS["isolate"](arguments("b3", zookeeper=True, clients=True)).begin(cluster)
    assert cluster.net.broken == brokers | {Link("b3", "zk1"), Link("client", "b3")}
    cluster = PaperCluster()
    FAULTS["isolate"](arguments("b3", brokers=False, zookeeper=True)).begin(cluster)
    assert cluster.net.broken == {Link("b3", "zk1")}


@pytest.mark.parametrize("jitter_ms", [0, 100])
@pytest.mark.usefixtures("no_waiting")
def test_host_load_is_no_latency(jitter_ms: int) -> None:
    """Its round trips take as long as some delays, before and after."""
    cluster = PaperCluster(without_effect=True)
    cluster.net.delays = dict.fromkeys(cluster.net.links(), 70)
    fault = FAULTS["latency"](arguments("follower", latency_ms=100, jitter_ms=jitter_ms))
    assert not fault.begin(cluster).acted


def test_latency_includes_clients_by_option() -> None:
    cluster = PaperCluster()
    FAULTS["latency"](arguments("all", latency_ms=50)).begin(cluster)
    assert Link("client", "b1") not in cluster.net.delays
    FAULTS["latency"](arguments("all", latency_ms=50, clients=True)).begin(cluster)
    assert cluster.net.delays[Link("client", "b1")] == 50


def test_only_the_bridge_reaches_both_halves() -> None:
    cluster = PaperCluster()
    FAULTS["bridge"](arguments("leader")).begin(cluster)
    assert cluster.net.broken == {Link("b1", "b3"), Link("b3", "b1")}
    with pytest.raises(NoTarget, match="one of at least three"):
        FAULTS["bridge"](arguments("b1,b2")).begin(cluster)


@pytest.mark.parametrize("count", [3, 4, 5, 7])
def test_ring_gives_each_broker_a_different_majority(count: int) -> None:
    cluster = PaperCluster()
    cluster.brokers = tuple(f"b{number}" for number in range(1, count + 1))
    cluster.states = dict.fromkeys((*cluster.brokers, "zk1"), NodeState.RUNNING)
    cluster.most = dict.fromkeys(cluster.states, 1024)
    FAULTS["ring"](arguments("all")).begin(cluster)
    majorities = {
        frozenset(b for b in cluster.brokers if Link(a, b) not in cluster.net.broken)
        for a in cluster.brokers
    }
    assert len(majorities) == count
    assert {len(majority) for majority in majorities} == {count // 2 + 1}


def test_links_flap_until_healing() -> None:
    cluster = PaperCluster()
    flapping = FAULTS["flapping"](arguments("b1<->b2", lowest_ms=50, highest_ms=51))
    flapping.begin(cluster)
    for was in (True, False, True):
        until(lambda was=was: bool(cluster.net.broken) is was)
    assert "was cut" in flapping.heal(cluster)
    assert not cluster.net.broken


def cut_links(name: str, target: str, **options: str | float | bool) -> set[Link]:
    cluster = PaperCluster(zookeepers=0, controllers=5)
    fault = FAULTS[name](arguments(target, **options))
    assert fault.begin(cluster).acted
    return set(cluster.net.broken)


def test_isolated_controller_reaches_neither_controllers_nor_brokers() -> None:
    cut = cut_links("isolate", "quorum_leader")
    assert cut == {
        *(Link("q1", f"q{n}") for n in range(2, 6)),
        *(Link(f"q{n}", "q1") for n in range(2, 6)),
        *(Link(f"b{n}", "q1") for n in range(1, 4)),
    }


def test_isolated_broker_keeps_the_controllers_unless_told_otherwise() -> None:
    to_controllers = {Link("b2", f"q{n}") for n in range(1, 6)}
    assert not cut_links("isolate", "leader") & to_controllers
    assert cut_links("isolate", "leader", zookeeper=True) >= to_controllers


def test_ring_of_the_quorum_gives_each_controller_a_different_majority() -> None:
    cut = cut_links("ring", "quorum")
    assert all(link.src[0] == link.dst[0] == "q" for link in cut)
    reached = {
        node: frozenset(other for other in VOTERS if Link(node, other) not in cut)
        for node in VOTERS
    }
    assert all(len(some) == 3 and node in some for node, some in reached.items())
    assert len(set(reached.values())) == len(VOTERS)


def test_bridge_of_the_quorum_leaves_brokers_alone() -> None:
    cut = cut_links("bridge", "quorum_leader")
    assert len(cut) == 2 * 2 * 2
    assert {end for link in cut for end in (link.src, link.dst)} == set(VOTERS) - {"q1"}
