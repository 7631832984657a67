"""Every fault acts on its targets, proves that it acted, and is undone by healing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.paper import VIEW, PaperCluster
from tests.chaos.paper_faults import arguments, sample_target
from tests.waiting import until
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.faults.base import clock_fault
from urteil.chaos.faults.zookeeper import controller_deleted
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import (
    Descriptors,
    LabFailure,
    Link,
    NodeState,
    NodeStatus,
    NotHealthy,
    Probe,
)

ON_NODES = [name for name, fault in FAULTS.items() if fault.family != "clients"]
"""Faults of clients are tested in test_client_faults.py."""


def prepared(name: str, *, without_effect: bool = False) -> PaperCluster:
    """A cluster in which the fault can act."""
    has_quorum = FAULTS[name].changes_voters
    cluster = PaperCluster(
        without_effect=without_effect,
        zookeepers=0 if has_quorum else 3,
        controllers=3 if has_quorum else 0,
    )
    if name in ("allow_unclean", "elect_unclean"):
        cluster.view = replace(VIEW, leader=None)
    return cluster


@pytest.mark.parametrize("name", ON_NODES)
def test_fault_proves_that_it_acted(name: str) -> None:
    fault = FAULTS[name](arguments(sample_target(name)))
    proof = fault.begin(cluster := prepared(name))
    fault.heal(cluster)
    proof = fault.final_proof(proof)
    assert proof.acted
    assert fault.targets
    assert proof.text


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("name", sorted(set(ON_NODES) - {"disk_gone"}))  # a rename acts, or raises
def test_fault_without_effect_did_not_act(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_deleted, "ELECTED_S", 0.05)
    monkeypatch.setattr(clock_fault, "DEADLINE_S", 0.05)
    monkeypatch.setattr("urteil.chaos.faults.process.starve.DEADLINE_S", 0.1)
    fault = FAULTS[name](arguments(sample_target(name)))
    cluster = prepared(name, without_effect=True)
    proof = fault.begin(cluster)
    fault.heal(cluster)
    assert not fault.final_proof(proof).acted


@pytest.mark.parametrize("name", ON_NODES)
def test_healing_removes_all_effects(name: str) -> None:
    cluster = prepared(name)
    fault = FAULTS[name](arguments(sample_target(name)))
    fault.begin(cluster)
    fault.heal(cluster)
    fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""
    assert not cluster.net.degraded
    assert not cluster.starved
    assert set(cluster.most.values()) == {1024}
    assert set(cluster.states.values()) == {NodeState.RUNNING}
    assert not cluster.net.broken
    assert not cluster.net.delays
    assert not cluster.containers.found
    assert fault.find_residual_effects(cluster) == ""


def test_rolling_restart_waits_for_health_between_brokers() -> None:
    cluster = PaperCluster()
    FAULTS["rolling_restart"](arguments("all")).begin(cluster)
    steps = [step for node in cluster.brokers for step in (f"stop {node}", f"start {node}")]
    assert [act for act in cluster.acts if act != "await_healthy"] == steps
    assert cluster.acts.count("await_healthy") == 3


def test_crash_loop_ends_with_all_nodes_running() -> None:
    cluster = PaperCluster()
    loop = FAULTS["crash_loop"](arguments("b1,b3", lowest_ms=0, highest_ms=5))
    loop.begin(cluster)
    until(lambda: cluster.acts.count("kill b1") > 2)
    assert "died" in loop.heal(cluster)
    assert set(cluster.states.values()) == {NodeState.RUNNING}


def test_failing_step_is_raised_at_healing() -> None:
    cluster = PaperCluster()
    loop = FAULTS["crash_loop"](arguments("b1", lowest_ms=0, highest_ms=1))
    loop.begin(cluster)
    cluster.start = lambda node, deadline_s=0.0: (_ for _ in ()).throw(NotHealthy("no"))
    with pytest.raises(NotHealthy):
        loop.heal(cluster)


def test_node_that_exits_without_descriptors_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Healing restores the limit of a process that is already exiting."""
    cluster = PaperCluster()
    fault = FAULTS["out_of_descriptors"](FaultArguments(target="leader", topic="t"))
    fault.begin(cluster)
    (node,) = fault.targets
    give_back = cluster.limit_descriptors

    def too_late(name: str, most: int) -> Descriptors:
        result = give_back(name, most)
        cluster.states[name] = NodeState.DEAD
        return result

    monkeypatch.setattr(cluster, "limit_descriptors", too_late)
    assert f"{node} exited and runs again" in fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""


def test_node_with_a_late_exit_report_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process is gone or a zombie, and the engine still reports it as running."""
    cluster = PaperCluster()
    fault = FAULTS["out_of_descriptors"](FaultArguments(target="leader", topic="t"))
    most = dict(cluster.most)
    fault.begin(cluster)
    (node,) = fault.targets
    status, request = cluster.status, iter(range(3))

    def observe(name: str, most: int) -> Descriptors:
        raise LabFailure(f"{name} is not a process of this machine")

    def late_status(name: str) -> NodeStatus:
        if name == node and next(request, None) is None:
            cluster.states[node] = NodeState.DEAD
            cluster.most = most  # another process has limits of its own
            monkeypatch.undo()
        return status(name)

    monkeypatch.setattr(cluster, "limit_descriptors", observe)
    monkeypatch.setattr(cluster, "status", late_status)
    assert f"{node} exited and runs again" in fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""


def test_node_that_answers_while_it_exits_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = PaperCluster()
    fault = FAULTS["out_of_descriptors"](FaultArguments(target="leader", topic="t"))
    fault.begin(cluster)
    (node,) = fault.targets
    probe, answers = cluster.net.probe, iter(range(3))

    def probe_until_dead(link: Link, *, timeout_s: float = 1.0) -> Probe:
        if next(answers, None) is None:
            cluster.states[node] = NodeState.DEAD
            monkeypatch.undo()
        return probe(link, timeout_s=timeout_s)

    monkeypatch.setattr(cluster.net, "probe", probe_until_dead)
    assert f"{node} exited and runs again" in fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""


@pytest.mark.parametrize(("once", "begin"), [(False, 75), (True, 50)])
def test_healing_deletes_records_again_unless_once_is_set(*, once: bool, begin: int) -> None:
    cluster = prepared("delete_records")
    fault = FAULTS["delete_records"](arguments("topic", once=once))
    fault.begin(cluster)
    fault.heal(cluster)
    assert set(cluster.admin.starts.values()) == {begin}


@pytest.mark.parametrize(
    "name", ["crash", "shutdown", "crash_loop", "power_cut", "disk_emptied", "disk_full", "pause"]
)
@pytest.mark.parametrize("state", [NodeState.DEAD, NodeState.PAUSED])
def test_healing_keeps_effects_of_other_faults(name: str, state: NodeState) -> None:
    cluster = PaperCluster()
    cluster.states["b1"] = state
    fault = FAULTS[name](arguments("all"))
    assert fault.begin(cluster).acted
    assert fault.targets == ("b2", "b3")
    fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""
    assert cluster.states["b1"] is state


@pytest.mark.parametrize("name", ["rolling_restart", "late_command"])
def test_node_that_another_fault_killed_is_not_restarted(name: str) -> None:
    """A runtime also reports the process id of a dead node; only a start changes it."""

    class Remembering(PaperCluster):
        def status(self, node: str) -> NodeStatus:
            status = super().status(node)
            return replace(status, pid=status.pid or 7)

    cluster = Remembering()
    cluster.kill("b2")
    fault = FAULTS[name](arguments("b2"))
    with pytest.raises(NoTarget, match="no such node runs"):
        fault.begin(cluster)
    fault.heal(cluster)
    assert cluster.states["b2"] is NodeState.DEAD


def test_shutdown_that_ends_by_sigkill_kills_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = PaperCluster()
    for name in ("shutdown", "rolling_restart"):
        fault = FAULTS[name](arguments("b1"))
        fault.begin(cluster)
        assert Effect.STOPS_NODES in fault.injected_effects()
        fault.heal(cluster)
    monkeypatch.setattr(cluster, "stop", cluster.kill)
    for name in ("shutdown", "rolling_restart"):
        fault = FAULTS[name](arguments("b1"))
        fault.begin(cluster)
        assert Effect.STOPS_NODES not in fault.injected_effects()
        assert Effect.KILLS_NODES in fault.injected_effects()
        fault.heal(cluster)


def test_rule_is_removed_even_if_its_hits_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = PaperCluster()
    fault = FAULTS["lose_answer"](arguments("client->leader", api="Fetch"))
    fault.begin(cluster)

    def fail(*_links: object, owner: str) -> list[object]:
        raise LabFailure(f"no hits of {owner}")

    monkeypatch.setattr(cluster.net, "rule_hits", fail)
    with pytest.raises(LabFailure):
        fault.heal(cluster)
    assert not cluster.net.rules


def test_topic_is_created_again_in_kraft_while_its_replica_is_down() -> None:
    cluster = PaperCluster(zookeepers=0)
    fault = FAULTS["recreate_topic"](arguments("topic"))
    proof = fault.begin(cluster)
    topic, follower = fault.targets
    assert proof.acted
    assert cluster.status(follower).state is NodeState.DEAD
    topic_id = cluster.admin.topic_id(topic)
    assert topic_id is not None
    assert f"{topic} has the id {topic_id} and 7 records" in proof.text
    fault.heal(cluster)
    assert not fault.find_residual_effects(cluster)
    assert cluster.admin.topic_id(topic) == topic_id


def test_broker_is_killed_between_a_folder_and_its_topic_id() -> None:
    cluster = PaperCluster(zookeepers=0)
    fault = FAULTS["crash_at_creation"](arguments("b2", partitions=3))
    proof = fault.begin(cluster)
    assert cluster.status("b2").state is NodeState.DEAD
    assert "3 of 3 folders" in proof.text
    assert "3 of them without a topic id (new-" in proof.text
    fault.heal(cluster)
    assert not fault.find_residual_effects(cluster)


def test_healing_may_follow_a_creation_that_found_no_broker() -> None:
    cluster = PaperCluster(zookeepers=0)
    cluster.kill("b2")
    fault = FAULTS["crash_at_creation"](arguments("b2"))
    with pytest.raises(NoTarget):
        fault.begin(cluster)
    fault.heal(cluster)
    assert not fault.find_residual_effects(cluster)


def test_controller_cannot_be_fenced() -> None:
    cluster = PaperCluster(zookeepers=0, controllers=3)
    with pytest.raises(NoTarget, match="q1 is not a broker and has no session"):
        FAULTS["fence"](arguments("quorum_leader")).begin(cluster)
    assert not cluster.acts


def test_upgrade_in_kraft_begins_with_controllers_and_raises_features_at_healing() -> None:
    cluster = PaperCluster(zookeepers=0, controllers=3)
    fault = FAULTS["upgrade"](arguments("all"))
    proof = fault.begin(cluster)
    assert fault.targets == ("q1", "q2", "q3", "b1", "b2", "b3")
    restarts = [act for act in cluster.acts if act.startswith("stop")]
    assert restarts == [f"stop {node}" for node in fault.targets]
    assert proof.text.startswith("q1: old, then new, step 1; ")
    assert "raise features" not in cluster.acts
    cluster.kill("b2")  # by another fault
    for _ in range(2):
        fault.heal(cluster)
    assert cluster.acts.count("raise features") == 1
    assert cluster.states["b2"] is NodeState.DEAD
    proof = fault.final_proof(proof)
    assert proof.acted
    assert proof.text.endswith("; metadata.version 21, then 25 (group.version 1)")


def test_upgrade_in_kraft_did_not_act_if_metadata_version_stays() -> None:
    cluster = PaperCluster(zookeepers=0)
    fault = FAULTS["upgrade"](arguments("all"))
    proof = fault.begin(cluster)
    assert proof.acted
    cluster.without_effect = True
    fault.heal(cluster)
    assert not fault.final_proof(proof).acted


def test_upgrade_that_failed_starts_its_node_and_keeps_the_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = PaperCluster(zookeepers=0)
    fault = FAULTS["upgrade"](arguments("all"))
    monkeypatch.setattr(cluster, "start", raise_not_healthy)
    with pytest.raises(NotHealthy):
        fault.begin(cluster)
    monkeypatch.undo()
    assert cluster.states["b1"] is NodeState.DEAD
    fault.heal(cluster)
    assert cluster.states["b1"] is NodeState.RUNNING
    assert "raise features" not in cluster.acts


def raise_not_healthy(node: str, *, deadline_s: float = 60.0) -> NodeStatus:
    raise NotHealthy(f"{node} does not answer after {deadline_s:g} s")
