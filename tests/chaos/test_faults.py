"""Every fault acts on whom it should, proves it, and is undone by healing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.paper import VIEW, PaperCluster
from urteil.chaos.aim import Aim
from urteil.chaos.controls import Link, NodeState
from urteil.chaos.faults import FAULTS, controller_deleted

TARGETS = {"partition": "follower->leader"}
FAMILIES = {
    "network", "process", "container", "disk", "zookeeper", "clock", "clients", "administration"
}  # fmt: skip


HASTY = ("elect_preferred", "elect_unclean", "reassign", "recreate_topic", "topic_churn")


def prepared(name: str, *, toothless: bool = False) -> PaperCluster:
    """A cluster in which the fault finds what it is for."""
    cluster = PaperCluster(toothless=toothless)
    if name == "elect_unclean":
        cluster.view = replace(VIEW, leader=None)
    return cluster


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not come at once never comes: nothing happens on paper meanwhile."""
    for module in HASTY:
        path = f"urteil.chaos.faults.{module}.until"
        monkeypatch.setattr(path, lambda condition, deadline_s: condition())


def aim(target: str, **options: str | float | bool) -> Aim:
    return Aim(target=target, topic="t", seed="7", options=options)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_proves_that_it_acted(name: str) -> None:
    fault = FAULTS[name](aim(TARGETS.get(name, "leader")))
    proof = fault.begin(prepared(name))
    assert proof.acted
    assert fault.targets
    assert proof.text


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("name", sorted(FAULTS.keys() - {"disk_gone"}))  # a rename acts, or raises
def test_a_fault_without_effect_is_not_said_to_have_acted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_deleted, "ELECTED_S", 0.05)
    fault = FAULTS[name](aim(TARGETS.get(name, "leader")))
    assert not fault.begin(prepared(name, toothless=True)).acted


@pytest.mark.parametrize("name", FAULTS)
def test_healing_leaves_nothing_behind(name: str) -> None:
    cluster = prepared(name)
    fault = FAULTS[name](aim(TARGETS.get(name, "all" if name == "latency" else "leader")))
    fault.begin(cluster)
    fault.heal(cluster)
    fault.heal(cluster)
    assert set(cluster.states.values()) == {NodeState.RUNNING}
    assert not cluster.net.broken
    assert not cluster.net.delays
    assert not cluster.containers.found
    assert fault.remains(cluster) == ""


def test_a_one_way_partition_cuts_the_followers_fetches_alone() -> None:
    cluster = PaperCluster()
    FAULTS["partition"](aim("followers->leader")).begin(cluster)
    assert cluster.net.broken == {Link("b1", "b2"), Link("b3", "b2")}


def test_a_two_way_partition_cuts_both_directions() -> None:
    for fault in (aim("b1<->b2"), aim("b1->b2", direction="two-way")):
        cluster = PaperCluster()
        FAULTS["partition"](fault).begin(cluster)
        assert cluster.net.broken == {Link("b1", "b2"), Link("b2", "b1")}


def test_isolation_takes_zookeeper_and_clients_only_when_asked() -> None:
    cluster = PaperCluster()
    FAULTS["isolate"](aim("b3")).begin(cluster)
    brokers = {Link("b3", "b1"), Link("b3", "b2"), Link("b1", "b3"), Link("b2", "b3")}
    assert cluster.net.broken == brokers
    cluster = PaperCluster()
    FAULTS["isolate"](aim("b3", zookeeper=True, clients=True)).begin(cluster)
    assert cluster.net.broken == brokers | {Link("b3", "zk1"), Link("client", "b3")}
    cluster = PaperCluster()
    FAULTS["isolate"](aim("b3", brokers=False, zookeeper=True)).begin(cluster)
    assert cluster.net.broken == {Link("b3", "zk1")}


def test_latency_spares_the_clients_unless_asked() -> None:
    cluster = PaperCluster()
    FAULTS["latency"](aim("all", latency_ms=50)).begin(cluster)
    assert Link("client", "b1") not in cluster.net.delays
    FAULTS["latency"](aim("all", latency_ms=50, clients=True)).begin(cluster)
    assert cluster.net.delays[Link("client", "b1")] == 50


def test_a_rolling_restart_waits_for_health_between_brokers() -> None:
    cluster = PaperCluster()
    FAULTS["rolling_restart"](aim("all")).begin(cluster)
    steps = [step for node in cluster.brokers for step in (f"stop {node}", f"start {node}")]
    assert [act for act in cluster.acts if act != "await_healthy"] == steps
    assert cluster.acts.count("await_healthy") == 3


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="latency takes no option delay"):
        FAULTS["latency"](aim("all", delay=3))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_of_itself_what_the_list_shows(name: str) -> None:
    fault = FAULTS[name]
    assert fault.about
    assert fault.proves
    assert fault.family in FAMILIES
    assert fault.expiry_s > 0
    assert set(fault.on_runtimes) <= {"process", "docker"}
    assert set(fault.on_targets) <= {"urteil", "kafka", "mix", "external"}
    assert set(fault.sample_options) <= set(fault.options)


def test_where_a_fault_does_not_act_is_told() -> None:
    unplug = FAULTS["unplug"]
    assert unplug.unfit(runtime="docker", target="kafka:3.8.0") == ""
    assert "--runtime docker" in unplug.unfit(runtime="process", target="urteil")
    assert "external" in unplug.unfit(runtime="", target="external:x.toml")
    assert FAULTS["crash"].unfit(runtime="", target="external:x.toml") == ""
