"""Every fault acts on its targets, proves that it acted, and is undone by healing."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.paper import VIEW, PaperCluster
from tests.waiting import until
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS, Fault
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
    Transfer,
)

ON_NODES = [name for name, fault in FAULTS.items() if fault.family != "clients"]
"""Faults of clients are tested in test_client_faults.py."""

FAMILIES = {
    "network", "process", "container", "disk", "zookeeper", "clock", "clients", "administration",
    "protocol",
}  # fmt: skip


VOTERS = tuple(f"q{number}" for number in range(1, 6))


def prepared(name: str, *, without_effect: bool = False) -> PaperCluster:
    """A cluster in which the fault can act."""
    cluster = PaperCluster(without_effect=without_effect, zookeepers=3)
    if name in ("allow_unclean", "elect_unclean"):
        cluster.view = replace(VIEW, leader=None)
    return cluster


def sample_target(name: str) -> str:
    """The target of the fault in these tests."""
    links = FAULTS[name].family == "network"
    return FAULTS[name].sample if links else "leader"


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits return at once: nothing changes in a paper cluster meanwhile."""
    for module in {sys.modules[fault.__module__] for fault in FAULTS.values()}:
        if hasattr(module, "until"):
            monkeypatch.setattr(module, "until", lambda read, *_reached, **_times: read())


def arguments(target: str, **options: str | float | bool) -> FaultArguments:
    return FaultArguments(target=target, topic="t", seed="7", options=options)


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


def test_rolling_restart_waits_for_health_between_brokers() -> None:
    cluster = PaperCluster()
    FAULTS["rolling_restart"](arguments("all")).begin(cluster)
    steps = [step for node in cluster.brokers for step in (f"stop {node}", f"start {node}")]
    assert [act for act in cluster.acts if act != "await_healthy"] == steps
    assert cluster.acts.count("await_healthy") == 3


def test_unknown_option_is_rejected() -> None:
    with pytest.raises(ValueError, match="latency takes no option delay"):
        FAULTS["latency"](arguments("all", delay=3))


@pytest.mark.parametrize("name", FAULTS)
def test_fault_list_prints_the_declarations(name: str) -> None:
    fault = FAULTS[name]
    assert fault.about
    assert fault.proves
    assert fault.family in FAMILIES
    assert fault.expiry_s > 0
    assert set(fault.on_runtimes) <= {"process", "docker"}
    assert set(fault.on_targets) <= {"urteil", "kafka", "kafka-kraft", "mix", "external"}
    assert set(fault.sample_options) <= set(fault.options)


def test_fault_stands_in_the_folder_of_its_family() -> None:
    for fault in FAULTS.values():
        assert fault.__module__.split(".")[:4] == ["urteil", "chaos", "faults", fault.family]


def test_second_fault_of_the_same_name_is_rejected() -> None:
    with pytest.raises(ValueError, match="two faults are named crash"):
        type("Crash", (Fault,), {"name": "crash"})


def test_unsupported_runtime_or_target_has_a_reason() -> None:
    unplug = FAULTS["unplug"]
    assert unplug.unsupported_reason(runtime="docker", target="kafka:3.8.0") == ""
    assert "--runtime docker" in unplug.unsupported_reason(runtime="process", target="urteil")
    assert "external" in unplug.unsupported_reason(runtime="", target="external:x.toml")
    assert FAULTS["crash"].unsupported_reason(runtime="", target="external:x.toml") == ""


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


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bandwidth", {"rate_kb_per_s": 0}),
        ("slow_close", {"delay_ms": 50}),
        ("reset", {"after_ms": 5000}),
        ("cut_after", {"bytes": 5}),
        ("slices", {"bytes": 10, "variation_bytes": 10}),
        ("flapping", {"lowest_ms": 10}),
        ("crash_loop", {"lowest_ms": 3000}),
        ("starve", {"cpus": 2}),
    ],
)
def test_number_out_of_range_is_rejected(name: str, options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        FAULTS[name](arguments("leader", **options))


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
        raise LabFailure(f"{name} is no process of this machine")

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


def test_external_cluster_rejects_quotas() -> None:
    """They are for its other clients too, and nobody takes them away when the lab is killed."""
    assert FAULTS["quota"].unsupported_reason(runtime="", target="external:theirs.toml")


@pytest.mark.parametrize("name", FAULTS)
def test_fault_has_effects(name: str) -> None:
    fault = FAULTS[name]
    assert fault.effects
    injected = fault(arguments(sample_target(name))).injected_effects()
    assert injected
    assert injected <= fault.effects | {Effect.KILLS_NODES}


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


def test_effects_depend_on_options() -> None:
    def effects(name: str, **options: str | float | bool) -> frozenset[Effect]:
        return FAULTS[name](arguments("b1", **options)).injected_effects()

    assert effects("rolling_restart", kill=True) == {Effect.KILLS_NODES, Effect.RESTARTS_NODES}
    assert effects("limit", memory_mb=64) == {Effect.LIMITS_MEMORY}
    assert effects("segment_damaged", up=True, repair=False) == {Effect.DAMAGES_FILES}


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


@pytest.mark.parametrize(
    ("name", "selector", "options"),
    [
        ("crash", "zookeeper_majority", {}),
        ("pause", "zk1", {}),
        ("partition", "controller->zookeeper", {}),
        ("isolate", "leader", {"brokers": False, "zookeeper": True}),
        ("session_expired", "leader", {}),
    ],
)
def test_fault_on_zookeeper_is_refused_without_zookeeper(
    name: str, selector: str, options: dict[str, bool]
) -> None:
    def reason(target: str) -> str:
        return FAULTS[name].unsupported_reason(
            runtime="process", target=target, selector=selector, options=options
        )

    assert reason("kafka-kraft:3.9.1").startswith(f"the fault {name} ")
    assert not reason("kafka")


@pytest.mark.parametrize("selector", ["quorum_leader", "b1->q2", "quorum_minority<->quorum"])
def test_fault_on_the_quorum_is_refused_with_zookeeper(selector: str) -> None:
    name = "partition" if "-" in selector else "crash"

    def reason(target: str) -> str:
        return FAULTS[name].unsupported_reason(runtime="process", target=target, selector=selector)

    assert reason("urteil").endswith("--target urteil has none: take --target kafka:4.4.0")
    assert not reason("kafka:4.4.0")


def test_fault_on_brokers_acts_without_zookeeper() -> None:
    for name, selector, options in (
        ("crash", "leader", {}),
        ("isolate", "leader", {"zookeeper": True}),
        ("partition", "leader<->followers", {}),
    ):
        assert not FAULTS[name].unsupported_reason(
            runtime="process", target="kafka-kraft", selector=selector, options=options
        )


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


def test_controller_cannot_be_fenced() -> None:
    cluster = PaperCluster(zookeepers=0, controllers=3)
    with pytest.raises(NoTarget, match="q1 is no broker and has no session"):
        FAULTS["fence"](arguments("quorum_leader")).begin(cluster)
    assert not cluster.acts
