"""Faults of a run with two clusters: selectors name the cluster, links of the far application."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chaos.paper import PaperCluster
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.loopback import LoopbackPlan
from urteil.chaos.nemesis import Nemesis
from urteil.chaos.node_selectors import NoTarget, check_target, select_links, split_cluster
from urteil.chaos.observations import WAN, Link, NodeState
from urteil.chaos.schedule import plan_schedule
from urteil.chaos.topology import EAST, WEST, Layout, Ports
from urteil.harness.scenario import FaultSpec

PORTS = Ports(
    internal=1, client=2, zookeeper=3, peer=4, election=5, toxiproxy=6, metrics=7, users=8, wan=9
)


def test_far_applications_have_links_and_a_listener_of_their_own() -> None:
    plan = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1, layout=Layout(wan=True))
    far = [link for link in plan.links() if link.src == WAN]
    assert far == [Link(WAN, "b1"), Link(WAN, "b2")]
    assert [plan.proxies(link)[0].listen for link in far] == plan.wan_bootstrap()
    assert {plan.proxies(link)[0].upstream for link in far} == {
        f"{plan.address('b1')}:9",
        f"{plan.address('b2')}:9",
    }
    without = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1)
    assert not without.wan_bootstrap()
    assert WAN not in without.nodes


def test_second_cluster_has_other_node_names() -> None:
    layout = Layout(first_broker_id=11, first_zookeeper_id=11)
    plan = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1, layout=layout)
    usual = LoopbackPlan(77, PORTS, brokers=2, zookeepers=1)
    assert (plan.brokers, plan.zookeepers) == (("b11", "b12"), ("zk11",))
    assert list(map(plan.address, plan.nodes)) == list(map(usual.address, usual.nodes))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("leader", (EAST, "leader")),
        ("east:leader", (EAST, "leader")),
        ("west: b11", (WEST, "b11")),
        ("west:follower->leader", (WEST, "follower->leader")),
        ("north:leader", (EAST, "north:leader")),
    ],
)
def test_selector_names_its_cluster(target: str, expected: tuple[str, str]) -> None:
    assert split_cluster(target) == expected


def test_wan_selects_the_links_to_all_brokers() -> None:
    cluster = PaperCluster()
    with pytest.raises(NoTarget, match="wan selects no link"):
        select_links(cluster, FaultArguments(target="wan"))
    cluster.net.further = [Link(WAN, broker) for broker in cluster.brokers]
    assert select_links(cluster, FaultArguments(target="wan")) == cluster.net.further
    assert select_links(cluster, FaultArguments(target="wan->leader")) == [Link(WAN, "b2")]
    check_target("wan", "left->right", brokers=["b1"], zookeepers=[])


def test_fault_acts_on_the_cluster_that_its_selector_names(tmp_path: Path) -> None:
    east, west = PaperCluster(), PaperCluster()
    faults = plan_schedule(
        [FaultSpec(fault="crash", target="west:leader", at_s=0.0, duration_s=0.1)],
        seed=1,
        topic="t",
    )
    file = tmp_path / "faults.jsonl"
    nemesis = Nemesis(east, faults, record=file, acked=lambda: 0, second=west)
    nemesis.play(duration_s=0.1)
    nemesis.heal(deadline_s=1)
    assert json.loads(file.read_text())["acted"]
    assert (east.starts["b2"], west.starts["b2"]) == (1, 2)


def test_healing_restores_both_clusters(tmp_path: Path) -> None:
    east, west = PaperCluster(), PaperCluster()
    nemesis = Nemesis(east, [], record=tmp_path / "faults.jsonl", acked=lambda: 0, second=west)
    west.pause("b3")
    assert nemesis.heal(deadline_s=1) is not None
    assert west.states["b3"] is NodeState.RUNNING


def test_fault_in_an_absent_second_cluster_does_not_act(tmp_path: Path) -> None:
    spec = FaultSpec(fault="crash", target="west:leader", at_s=0.0, duration_s=0.1)
    faults = plan_schedule([spec], seed=1, topic="t")
    nemesis = Nemesis(PaperCluster(), faults, record=tmp_path / "f.jsonl", acked=lambda: 0)
    with pytest.raises(ValueError, match="west:leader: the run has one cluster"):
        nemesis.play(duration_s=0.1)
