"""A scenario with two clusters: its checks, the clusters of its clients, and its evidence."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from urteil.chaos.topology import EAST, WEST
from urteil.harness.clients.kind import client_kinds
from urteil.harness.clients.run_specs import RunSpecs
from urteil.harness.cluster import open_second
from urteil.harness.evidence.limits import SECOND_ZXID
from urteil.harness.evidence.state_collection import _of_second
from urteil.harness.run.topics import fit_topics
from urteil.harness.scenario import (
    ClusterSpec,
    FaultSpec,
    Scenario,
    TopicFact,
    TopicSpec,
    WorkloadSpec,
    node_names,
)
from urteil.harness.schedule import ScheduleError, load_schedule, schedule_of, settle_schedule
from urteil.harness.topic_settings import setting

CRASH = FaultSpec(fault="crash", target="west:leader", at_s=4)
PAIR = Scenario(
    name="pair",
    second=ClusterSpec(brokers=2),
    workload=WorkloadSpec(topics=(TopicSpec(), TopicSpec(name="far", cluster="west"))),
    faults=(CRASH,),
)


def fact(name: str, cluster: str = "east", *, copies: bool = False) -> TopicFact:
    fields = {"name": name, "topic_id": name, "partitions": 1, "replication_factor": 1}
    return msgspec.convert(fields | {"cluster": cluster, "copies": copies}, TopicFact)


def specs(*topics: TopicFact) -> RunSpecs:
    return RunSpecs(
        scenario=PAIR,
        run_dir=Path("unused"),
        run_id="r1",
        bootstrap=("east:1",),
        second_bootstrap=("west:1",),
        user_listeners=(),
        topics=topics,
    )


def test_scenario_of_an_earlier_run_has_one_cluster() -> None:
    earlier = msgspec.json.decode(b'{"name": "old"}', type=Scenario)
    assert earlier.second is None
    assert earlier.workload.topics[0].cluster == EAST


def test_nodes_of_both_clusters_have_different_names() -> None:
    east, west = node_names(PAIR, EAST), node_names(PAIR, WEST)
    assert (east.brokers, east.zookeepers, east.voters) == (["b1", "b2", "b3"], ["zk1"], [])
    assert (west.brokers, west.zookeepers, west.voters) == (["b11", "b12"], ["zk11"], [])


def test_topics_fit_their_clusters() -> None:
    assert [topic.replication_factor for topic in fit_topics(PAIR)] == [3, 2]
    alone = msgspec.structs.replace(PAIR, second=None)
    with pytest.raises(ValueError, match="topic far is in west, a cluster that pair has not"):
        fit_topics(alone)
    twins = WorkloadSpec(topics=(TopicSpec(), TopicSpec(cluster="west")))
    with pytest.raises(ValueError, match="two topics named urteil"):
        fit_topics(msgspec.structs.replace(PAIR, workload=twins))


def test_clients_are_assigned_to_clusters_with_their_topics() -> None:
    both = specs(fact("a"), fact("b", "west"))
    producer, consumer = client_kinds()["producer"], client_kinds()["consumer"]
    dealt = [both.spec(name, consumer) for name in ("c1", "c2", "c3")]
    assert [spec.bootstrap for spec in dealt] == [("east:1",), ("west:1",), ("east:1",)]
    assert [[topic.name for topic in spec.topics] for spec in dealt] == [["a"], ["b"], ["a"]]
    assert both.spec("p2", producer).bootstrap == ("west:1",)
    copied = specs(fact("a"), fact("b", "west", copies=True))
    assert copied.spec("p2", producer).bootstrap == ("east:1",), "only an application writes to b"
    assert copied.spec("c2", consumer).bootstrap == ("west:1",)
    assert both.spec("g2", client_kinds()["group"]).bootstrap == ("east:1",)


def test_schedule_keeps_the_cluster_of_a_selector(tmp_path: Path) -> None:
    settled = settle_schedule(PAIR)
    assert settled.faults[0].target == "west:leader"
    path = tmp_path / "schedule.json"
    path.write_bytes(msgspec.json.encode(schedule_of(settled)))
    assert load_schedule(path, settled).faults[0].target == "west:leader"
    path.write_text('{"faults": [{"fault": "crash", "target": "west:b1", "at_s": 1}]}')
    with pytest.raises(ScheduleError, match=r"'b1' is neither a role nor a node; nodes are b11"):
        load_schedule(path, settled)


@pytest.mark.parametrize(
    ("fault", "second", "reason"),
    [
        (CRASH, None, "pair has one cluster"),
        (FaultSpec(fault="delete_records", target="west:leader", at_s=1), ClusterSpec(), "first"),
    ],
)
def test_fault_that_cannot_act_in_the_second_cluster_is_rejected(
    fault: FaultSpec, second: ClusterSpec | None, reason: str
) -> None:
    scenario = msgspec.structs.replace(PAIR, faults=(fault,), second=second)
    with pytest.raises(ValueError, match=reason):
        settle_schedule(scenario)


@pytest.mark.parametrize("changed", [{"runtime": "docker"}, {"target": "external:a.toml"}])
def test_second_cluster_runs_as_processes_of_the_lab(
    changed: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="pair has two clusters"):
        open_second(msgspec.structs.replace(PAIR, **changed), tmp_path)


def test_states_of_two_clusters_are_not_ordered() -> None:
    row = _of_second({"zxid": 7, "controller_epoch": 3, "leader_epoch": 2})
    assert row == {"zxid": SECOND_ZXID + 7, "controller_epoch": None, "leader_epoch": 2}


def test_topic_settings_come_from_its_cluster() -> None:
    name = "min.insync.replicas"
    assert setting(fact("a"), PAIR, name) == "2"
    assert setting(fact("b", "west"), PAIR, name) == "1", "two brokers"
