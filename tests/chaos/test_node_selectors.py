"""Roles select nodes by the cluster's state, and by the seed among several."""

from __future__ import annotations

from dataclasses import replace
from threading import Timer

import pytest

from tests.chaos.paper import PaperCluster
from urteil.chaos import node_selectors
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.node_selectors import check_target
from urteil.chaos.observations import Link, NodeState


def chosen(target: str, seed: str = "1", cluster: PaperCluster | None = None) -> list[str]:
    return node_selectors.select_nodes(
        cluster or PaperCluster(), FaultArguments(target=target, topic="t", seed=seed)
    )


def test_roles_follow_the_cluster_state() -> None:
    assert chosen("leader") == ["b2"]
    assert chosen("controller") == ["b1"]
    assert chosen("followers") == ["b1", "b3"]
    assert chosen("successor") == chosen("straggler") == ["b3"]
    assert chosen("all") == ["b1", "b2", "b3"]
    assert chosen("zookeeper") == ["zk1"]
    assert chosen("b3, zk1") == ["b3", "zk1"]


def test_follower_is_in_sync_if_one_is() -> None:
    assert {chosen("follower", str(seed))[0] for seed in range(20)} == {"b3"}


def test_minority_is_less_than_half_and_depends_on_the_seed() -> None:
    picks = {tuple(chosen("minority", str(seed))) for seed in range(40)}
    assert picks == {("b1",), ("b2",), ("b3",)}


def test_equal_seeds_select_equal_nodes() -> None:
    assert len({chosen("random", "5")[0] for _ in range(10)}) == 1
    assert len({chosen("random", str(seed))[0] for seed in range(40)}) == 3


def test_bystander_is_not_the_controller() -> None:
    assert {chosen("bystander", str(seed))[0] for seed in range(20)} == {"b2", "b3"}


def test_role_without_node_is_no_target() -> None:
    cluster = PaperCluster()
    assert cluster.view is not None
    cluster.view = replace(cluster.view, leader=None)
    with pytest.raises(node_selectors.NoTarget, match="t-0 has no running leader"):
        node_selectors.select_nodes(
            cluster, FaultArguments(target="leader", topic="t", election_deadline_s=0.2)
        )


def test_first_topic_is_the_default() -> None:
    cluster = PaperCluster()
    assert node_selectors.select_nodes(cluster, FaultArguments(target="leader")) == ["b2"]
    cluster.views.clear()
    with pytest.raises(node_selectors.NoTarget, match=r"no topic exists.* aim at a node by"):
        node_selectors.select_nodes(cluster, FaultArguments(target="leader"))


def test_selection_waits_for_a_new_leader() -> None:
    cluster = PaperCluster()
    cluster.kill("b2")
    assert cluster.view is not None
    elected = replace(cluster.view, leader="b3")
    Timer(0.2, lambda: setattr(cluster, "view", elected)).start()
    assert chosen("leader", cluster=cluster) == ["b3"]


def test_ends_of_a_link_are_selected_again_after_an_election(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The follower of the first view leads in the second one."""
    cluster = PaperCluster()
    assert cluster.view is not None
    elected = replace(cluster.view, leader="b3")
    views = iter([cluster.view])
    monkeypatch.setattr(cluster, "partition", lambda topic, partition: next(views, elected))
    arguments = FaultArguments(target="straggler->leader", topic="t")
    assert node_selectors.select_links(cluster, arguments) == [Link("b2", "b3")]


def test_link_of_a_node_to_itself_is_no_target() -> None:
    with pytest.raises(node_selectors.NoTarget, match="b1->b1 selects no link"):
        node_selectors.select_links(PaperCluster(), FaultArguments(target="b1->b1"))


def test_unknown_name_is_rejected() -> None:
    with pytest.raises(ValueError, match="b9 is neither a role"):
        chosen("b9")


def test_roles_of_several_nodes() -> None:
    assert chosen("isr") == ["b2", "b3"]
    picks = {tuple(chosen("majority", str(seed))) for seed in range(40)}
    assert picks == {("b1", "b2"), ("b1", "b3"), ("b2", "b3")}
    assert chosen("zookeeper_leader") == chosen("zookeeper_majority") == ["zk1"]
    with pytest.raises(node_selectors.NoTarget, match="no minority"):
        chosen("zookeeper_minority")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("urteil-group", 1098296611), ("polygenelubricants", 0), ("a\U0001f600", 1866116)],
)
def test_java_hash_matches_java(text: str, expected: int) -> None:
    """`String.hashCode` in a JVM; the second one's is Integer.MIN_VALUE."""
    assert node_selectors.java_hash(text) == expected


def test_coordinator_is_the_leader_of_its_partition() -> None:
    with pytest.raises(node_selectors.NoTarget, match="__consumer_offsets does not exist"):
        chosen("coordinator")


def test_sender_and_receiver_are_the_ends_of_the_events_link() -> None:
    def select(target: str, event_link: str) -> list[str]:
        arguments = FaultArguments(target=target, topic="t", event_link=event_link)
        return node_selectors.select_nodes(PaperCluster(), arguments)

    assert select("sender", "b1->b3") == ["b1"]
    assert select("receiver", "client->b3") == ["b3"]
    with pytest.raises(node_selectors.NoTarget, match=r"sender is not a broker.* at client->b3"):
        select("sender", "client->b3")
    with pytest.raises(node_selectors.NoTarget, match=r"receiver .* at no request or answer"):
        select("receiver", "")


@pytest.mark.parametrize(("controllers", "voters"), [(0, "b1 b2 b3"), (3, "q1 q2 q3")])
def test_roles_of_the_quorum(controllers: int, voters: str) -> None:
    cluster = PaperCluster(zookeepers=0, controllers=controllers)

    def select(target: str, seed: str = "1") -> list[str]:
        arguments = FaultArguments(target=target, topic="t", seed=seed)
        return node_selectors.select_nodes(cluster, arguments)

    nodes = voters.split()
    assert select("quorum") == nodes
    assert select("controller") == select("quorum_leader") == select("quorum_minority") == nodes[:1]
    followers = {select("quorum_follower", str(seed))[0] for seed in range(40)}
    assert followers == set(nodes[1:])
    majorities = {tuple(select("quorum_majority", str(seed))) for seed in range(40)}
    assert majorities == {tuple(nodes[:2]), (nodes[0], nodes[2]), tuple(nodes[1:])}
    for node in nodes[1:]:
        cluster.states[node] = NodeState.DEAD
    with pytest.raises(node_selectors.NoTarget, match="no follower of the quorum runs"):
        select("quorum_follower")


def test_minority_of_five_controllers_has_two_with_the_leader() -> None:
    cluster = PaperCluster(zookeepers=0, controllers=5)
    arguments = FaultArguments(target="quorum_minority", topic="t", seed="3")
    chosen_nodes = node_selectors.select_nodes(cluster, arguments)
    assert len(chosen_nodes) == 2
    assert "q1" in chosen_nodes


def test_single_controller_has_no_minority() -> None:
    cluster = PaperCluster(zookeepers=0, controllers=1)
    arguments = FaultArguments(target="quorum_minority", topic="t", seed="3")
    with pytest.raises(node_selectors.NoTarget, match="quorum of 1 has no minority"):
        node_selectors.select_nodes(cluster, arguments)


def test_role_of_the_quorum_is_refused_with_zookeeper() -> None:
    with pytest.raises(node_selectors.NoTarget, match="no quorum of KRaft"):
        chosen("quorum_majority")
    with pytest.raises(ValueError, match="'quorum_leader': the cluster has no quorum of KRaft"):
        check_target("b1->quorum_leader", "left->right", brokers=["b1"], zookeepers=["zk1"])
    check_target("b1->q2", "left->right", brokers=["b1"], zookeepers=[], voters=["q1", "q2"])


def test_role_of_zookeeper_is_refused_in_a_cluster_without_it() -> None:
    with pytest.raises(ValueError, match="'zookeeper_leader': the cluster has no ZooKeeper"):
        check_target("b1->zookeeper_leader", "left->right", brokers=["b1"], zookeepers=[])
