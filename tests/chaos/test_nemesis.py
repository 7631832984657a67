"""The nemesis plays, records and always heals; it reports every failure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.paper import PaperCluster
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.link_rules import LINK_EVENTS
from urteil.chaos.nemesis import Nemesis
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import LabFailure, Link, NodeState, NodeStatus, NotHealthy
from urteil.chaos.schedule import PlannedFault, plan_schedule
from urteil.harness.scenario import FaultSpec


def schedule(*faults: FaultSpec) -> list[PlannedFault]:
    return plan_schedule(faults, seed=1, topic="t")


def nemesis(
    cluster: PaperCluster, tmp: Path, faults: Sequence[PlannedFault], acks: int = 0
) -> Nemesis:
    return Nemesis(cluster, faults, record=tmp / "faults.jsonl", acked=lambda: acks)


def rows(tmp: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (tmp / "faults.jsonl").read_text().splitlines()]


def test_faults_overlap_and_heal_in_order(tmp_path: Path) -> None:
    cluster = PaperCluster()
    cut = FaultSpec(fault="partition", target="followers->leader", at_s=0.0, duration_s=0.2)
    kill = FaultSpec(fault="crash", target="leader", at_s=0.1, duration_s=0.3)
    player = nemesis(cluster, tmp_path, schedule(cut, kill))
    player.play(duration_s=0.1)
    first, second = rows(tmp_path)
    assert first["fault"] == "partition"
    assert first["begin_ns"] < second["begin_ns"] < first["healed_ns"] < second["healed_ns"]  # type: ignore[operator]
    assert first["acted"]
    assert second["acted"]
    assert "healed" in str(second["proof"])
    assert cluster.states["b2"] is NodeState.RUNNING
    assert not player.problems


def test_fault_waits_for_its_acknowledgements(tmp_path: Path) -> None:
    faults = schedule(FaultSpec(fault="crash", target="leader", after_acks=10, duration_s=0))
    player = nemesis(PaperCluster(), tmp_path, faults, acks=10)
    player.play(duration_s=0.0)
    assert rows(tmp_path)[0]["acted"]


def test_fault_without_target_did_not_act(tmp_path: Path) -> None:
    cluster = PaperCluster()
    cluster.view = None
    faults = schedule(FaultSpec(fault="crash", target="follower", at_s=0, duration_s=0))
    player = nemesis(cluster, tmp_path, faults)
    player.play(duration_s=0)
    assert not rows(tmp_path)[0]["acted"]
    assert not player.problems


def test_healing_ends_active_faults_and_starts_only_their_targets(tmp_path: Path) -> None:
    cluster = PaperCluster()
    faults = schedule(FaultSpec(fault="crash", target="leader", at_s=0, duration_s=99))
    player = nemesis(cluster, tmp_path, faults)
    player._begin(faults[0])
    cluster.states["b1"] = NodeState.DEAD
    player.heal(deadline_s=1)
    assert cluster.states["b2"] is NodeState.RUNNING
    assert cluster.states["b1"] is NodeState.DEAD
    assert rows(tmp_path)[0]["healed_ns"] is not None


def test_failure_of_the_lab_is_a_problem(tmp_path: Path) -> None:
    cluster = PaperCluster()
    cluster.lab_failure = "the Toxiproxy of b1 died"
    player = nemesis(cluster, tmp_path, [])
    assert player.heal(deadline_s=1) is None
    assert player.problems == ["after healing: the Toxiproxy of b1 died"]


def test_cluster_that_does_not_recover_is_a_problem(tmp_path: Path) -> None:
    class Sick(PaperCluster):
        def await_healthy(self, *, deadline_s: float) -> float:
            raise NotHealthy("t-0 has no leader")

    player = nemesis(Sick(), tmp_path, [])
    assert player.heal(deadline_s=1) is None
    assert "t-0 has no leader" in player.problems[0]


def test_fault_without_target_waits_for_other_faults_to_heal(tmp_path: Path) -> None:
    """The waiting fault does not block their healing."""
    first = FaultSpec(fault="pause", target="b1,b2,b3", at_s=0, duration_s=0.2, choice="a")
    later = FaultSpec(fault="crash", target="leader", at_s=0, duration_s=0, choice="b")
    player = nemesis(PaperCluster(), tmp_path, schedule(first, later))
    player.play(duration_s=0)
    paused, killed = rows(tmp_path)
    assert paused["healed_ns"] <= killed["begin_ns"]  # type: ignore[operator]
    assert killed["acted"]
    assert not player.problems


def test_fault_whose_target_died_by_another_fault_selects_again(tmp_path: Path) -> None:
    class DyingFollower(PaperCluster):
        def pause(self, node: str) -> NodeStatus:
            if node == "b3":
                self.states[node] = NodeState.DEAD
                raise LabFailure("b3 has ended")
            return super().pause(node)

    specs = [
        FaultSpec(fault="disk_full", target="b3", at_s=0, duration_s=0.6, choice="a"),
        FaultSpec(fault="pause", target="follower", at_s=0.01, duration_s=0, choice="b"),
    ]
    player = nemesis(DyingFollower(), tmp_path, schedule(*specs))
    player.play(duration_s=0)
    full, paused = rows(tmp_path)
    assert full["acted"]
    assert paused["acted"]
    assert paused["targets"] == '["b1"]'
    assert not player.problems


def test_exclusive_fault_acts_alone(tmp_path: Path) -> None:
    specs = [
        FaultSpec(fault="pause", target="b1", at_s=0, duration_s=0.1, choice="a"),
        FaultSpec(fault="crash", target="all", at_s=0, duration_s=0.1, choice="b", alone=True),
        FaultSpec(fault="pause", target="b3", at_s=0.01, duration_s=0.1, choice="c"),
    ]
    player = nemesis(PaperCluster(), tmp_path, schedule(*specs))
    player.play(duration_s=0)
    by_name = {str(r["targets"]): (r["begin_ns"], r["healed_ns"]) for r in rows(tmp_path)}
    begin, healed = by_name.pop('["b1", "b2", "b3"]')
    assert all(other[1] <= begin or healed <= other[0] for other in by_name.values())  # type: ignore[operator]


def test_manual_healing_ends_faults_but_not_the_load(tmp_path: Path) -> None:
    cluster, results = PaperCluster(), []
    early = FaultSpec(fault="crash", target="leader", at_s=0.0, duration_s=60)
    late = FaultSpec(fault="pause", target="b1", at_s=50.0, duration_s=60)
    player = nemesis(cluster, tmp_path, schedule(early, late))
    player.heal_requested = lambda: "kill b2" in cluster.acts and not results
    player.on_manual_heal = results.append
    player.play(duration_s=0.0)
    assert results == [""]
    assert cluster.states["b2"] is NodeState.RUNNING
    assert "healed" in str(rows(tmp_path)[0]["proof"])
    assert "on request" in str(rows(tmp_path)[1]["proof"])
    assert cluster.held == {0: False}


def test_broker_killed_without_effect_is_started_again(tmp_path: Path) -> None:
    """The fault kills it to damage a log that it does not have, while other faults act."""
    cluster = PaperCluster()
    pause = FaultSpec(fault="pause", target="b1", at_s=0, duration_s=0.4, choice="a")
    damage = FaultSpec(
        fault="segment_damaged", target="b3", at_s=0.01, duration_s=0.1, choice="b",
        options={"partition": 5},
    )  # fmt: skip
    player = nemesis(cluster, tmp_path, schedule(pause, damage))
    player.play(duration_s=0.0)
    assert cluster.acts.count("kill b3") == 1
    assert cluster.states["b3"] is NodeState.RUNNING
    (result,) = [row for row in rows(tmp_path) if row["fault"] == "segment_damaged"]
    assert not result["acted"]
    assert "b3 has no log of t-5" in str(result["proof"])


def test_node_may_exit_only_by_an_active_fault() -> None:
    cluster = PaperCluster()
    fault = FAULTS["out_of_descriptors"](FaultArguments(target="b1", topic="t"))
    cluster.net.cut(cluster.net.links_of("b1"))
    with pytest.raises(NoTarget):
        fault.begin(cluster)
    assert "allow_exit b1 True" not in cluster.acts


def healed_ns(row: dict[str, object]) -> int:
    return int(str(row["healed_ns"]))


class Registering(PaperCluster):
    """Brokers that start only if their links to ZooKeeper work."""

    def start(self, node: str, *, deadline_s: float = 60.0) -> NodeStatus:
        if Link(node, "zk1") in self.net.broken or self.states["zk1"] is not NodeState.RUNNING:
            raise NotHealthy(f"{node} did not register")
        return super().start(node, deadline_s=deadline_s)


CUT_OFF = FaultSpec(
    fault="broker_from_zookeeper", target="b2", at_s=0.0, duration_s=0.4, choice="a"
)


NO_KEEPER = FaultSpec(fault="pause", target="zk1", at_s=0.0, duration_s=0.4, choice="a")


@pytest.mark.parametrize("cut_off", [CUT_OFF, NO_KEEPER], ids=["cut", "paused"])
def test_broker_is_started_when_it_reaches_zookeeper_again(
    tmp_path: Path, cut_off: FaultSpec
) -> None:
    cluster = Registering()
    kill = FaultSpec(fault="crash", target="b2", at_s=0.1, duration_s=0.1, choice="b")
    player = nemesis(cluster, tmp_path, schedule(cut_off, kill))
    player.play(duration_s=0.0)
    cut, killed = rows(tmp_path)
    assert healed_ns(cut) < healed_ns(killed)
    assert cluster.states["b2"] is NodeState.RUNNING
    assert not player.problems


def test_broker_that_reaches_one_zookeeper_is_started_in_time(tmp_path: Path) -> None:
    cluster = PaperCluster(zookeepers=3)
    cut = FaultSpec(fault="partition", target="b2->zk1,zk2", at_s=0, duration_s=0.6, choice="a")
    kill = FaultSpec(fault="crash", target="b2", at_s=0.1, duration_s=0.1, choice="b")
    player = nemesis(cluster, tmp_path, schedule(cut, kill))
    player.play(duration_s=0.0)
    cut_row, killed = rows(tmp_path)
    assert healed_ns(killed) < healed_ns(cut_row)


def test_broker_is_started_although_no_healing_will_reconnect_it(tmp_path: Path) -> None:
    """No active fault cut them off: the schedule continues to its end."""
    cluster = Registering()
    kills = [
        FaultSpec(fault="crash", target=node, at_s=0, duration_s=0.1, choice=node)
        for node in ("b2", "b3")
    ]
    cluster.net.cut([Link("b2", "zk1"), Link("b3", "zk1")])
    player = nemesis(cluster, tmp_path, schedule(*kills))
    player.play(duration_s=0.0)
    assert len(player.problems) == 2
    assert player.heal(deadline_s=1) is not None
    assert cluster.states["b2"] is cluster.states["b3"] is NodeState.RUNNING


@pytest.mark.parametrize("first", ["crash", "broker_from_zookeeper"])
def test_final_healing_heals_links_before_it_starts_brokers(tmp_path: Path, first: str) -> None:
    cluster = Registering()
    kill = FaultSpec(fault="crash", target="b2", at_s=0.0, duration_s=60, choice="b")
    faults = sorted(schedule(CUT_OFF, kill), key=lambda planned: planned.fault != first)
    player = nemesis(cluster, tmp_path, faults)
    for fault in faults:
        player._begin(fault)
    assert player.heal(deadline_s=1) is not None
    assert cluster.states["b2"] is NodeState.RUNNING
    assert not player.problems


def test_links_heal_although_a_broker_does_not_start(tmp_path: Path) -> None:
    cluster = Registering()
    player = nemesis(cluster, tmp_path, [])
    player._begin(schedule(FaultSpec(fault="crash", target="b2", at_s=0, duration_s=9))[0])
    cluster.net.cut(cluster.net.links_of("b2"))
    player.heal(deadline_s=1)
    assert not cluster.net.broken
    assert cluster.states["b2"] is NodeState.RUNNING


def test_fault_without_hold_does_not_begin_and_others_heal(tmp_path: Path) -> None:
    """The guard beside the cluster died."""

    class Unguarded(PaperCluster):
        def hold(self, fault: str, *, expiry_s: float) -> int:
            if fault == "pause":
                raise LabFailure("the guard died")
            return super().hold(fault, expiry_s=expiry_s)

    cluster = Unguarded()
    kill = FaultSpec(fault="crash", target="b2", at_s=0, duration_s=0.2, choice="a")
    pause = FaultSpec(fault="pause", target="b3", at_s=0.1, duration_s=0.1, choice="b")
    player = nemesis(cluster, tmp_path, schedule(kill, pause))
    player.play(duration_s=0.0)
    assert cluster.states["b2"] is NodeState.RUNNING
    assert "pause b3" not in cluster.acts
    assert "the guard died" in player.problems[0]


def test_requests_on_which_a_fault_acted_are_recorded(tmp_path: Path) -> None:
    lost = FaultSpec(
        fault="lose_request", target="client->leader", at_s=0, duration_s=0,
        options={"api": "EndTxn"},
    )  # fmt: skip
    player = nemesis(PaperCluster(), tmp_path, schedule(lost))
    player.play(duration_s=0)
    assert rows(tmp_path)[0]["acted"]
    (event,) = map(json.loads, (tmp_path / LINK_EVENTS).read_text().splitlines())
    assert (event["fault"], event["api"], event["act"]) == ("lose_request", "EndTxn", "drop")


def test_rule_that_no_request_matched_did_not_act(tmp_path: Path) -> None:
    """The row says what passed instead."""
    lost = FaultSpec(fault="lose_answer", target="client->leader", at_s=0, duration_s=0)
    player = nemesis(PaperCluster(without_effect=True), tmp_path, schedule(lost))
    player.play(duration_s=0)
    assert not rows(tmp_path)[0]["acted"]
    assert "7 Fetch" in str(rows(tmp_path)[0]["proof"])
    assert not (tmp_path / LINK_EVENTS).exists()
