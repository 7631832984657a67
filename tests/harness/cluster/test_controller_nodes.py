"""Clusters of KRaft whose controllers have nodes of their own, and standing clusters of KRaft."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from tests.waiting import until
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.observations import LabFailure, Link, NodeState
from urteil.harness import standing
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.collection import collect
from urteil.harness.scenario import ClusterSpec, RunFacts, save
from urteil.harness.standing import StandingRequest
from urteil.harness.standing.cluster_state import state_of
from urteil.harness.targets import KraftTarget

TOPIC = {"orders": {"num_partitions": 3, "replication_factor": 3}}

pytestmark = pytest.mark.thorough


def create_topic(bootstrap: list[str]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics(TOPIC)
    admin.close()


@pytest.mark.parametrize("version", ["3.6.2", "3.9.1", "4.4.0"])
def test_controllers_of_their_own_elect_and_leave_evidence(tmp_path: Path, version: str) -> None:
    target = KraftTarget(version=version)
    with Cluster(ClusterSpec(controllers=3), target, tmp_path) as cluster:
        controls = cluster.controls()
        create_topic(cluster.bootstrap)
        until(lambda: len(controls.partitions("orders")) == 3)
        controls.await_healthy(deadline_s=60)
        former = controls.controller()
        assert former in ("q1", "q2", "q3")
        others = [node for node in controls.voters if node != former]
        passed = [controls.net.passed_frames([Link(node, former)]) for node in others]
        assert all("Fetch" in frames for frames in passed)
        assert "BrokerHeartbeat" in controls.net.passed_frames([Link("b1", former)])
        assert not controls.net.passed_frames([Link("b1", "b2")]).count("BrokerHeartbeat")

        controls.kill(former)
        until(lambda: controls.controller() in others)
        assert controls.status(former).state is NodeState.DEAD
        controls.start(former)
        controls.await_healthy(deadline_s=60)
        isolate = FAULTS["isolate"](FaultArguments(target="quorum_leader", topic="orders"))
        leader = controls.controller()
        assert isolate.begin(controls).acted
        until(lambda: controls.controller() not in (leader, None))
        isolate.heal(controls)
        controls.await_healthy(deadline_s=60)

        os.kill(controls.status("q2").pid or 0, signal.SIGABRT)
        until(lambda: controls.status("q2").state is NodeState.DEAD)
        with pytest.raises(LabFailure, match=r"ended by itself: q2 \(exit -6\)"):
            controls.check()
        assert [(end.node, end.exit_code) for end in controls.unexpected_ends] == [("q2", -6)]
    facts = RunFacts(run="r1", seed=1, scenario="s", target="kafka", runtime="process",
                     boot_id="boot", command="", versions=cluster.versions())  # fmt: skip
    save(tmp_path / "run.json", facts)
    collected = collect(tmp_path)
    assert not collected.problems
    assert collected.rows["metadata_logs"] > 0
    assert collected.rows["states"] > 0


@pytest.mark.parametrize(
    ("runtime", "controllers"), [("process", 0), ("process", 3), ("docker", 0), ("docker", 3)]
)
def test_cluster_of_kraft_stands_with_faults_and_state(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    runtime: str,
    controllers: int,
) -> None:
    if runtime == "docker":
        request.getfixturevalue("engine")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asked = StandingRequest(
        name="kraft", target="kafka:4.4.0", controllers=controllers, runtime=runtime,
        settings={"log.retention.hours": "7"},
    )  # fmt: skip
    cluster = standing.start(asked)
    try:
        assert (cluster.zookeeper, cluster.zookeepers, cluster.controllers) == ("", 0, controllers)
        assert cluster.defaults["log.retention.hours"] == "7"
        create_topic(cluster.bootstrap)
        state = state_of(cluster)
        until(lambda: len(state.partitions("orders")) == 3)
        faults = standing.faults_on("kraft")
        with faults.fault("crash", "quorum_leader", expiry_s=60, topic="orders") as crash:
            assert crash.proof.acted
            until(lambda: state.controller() not in (None, *crash.targets))
        state.close()
    finally:
        standing.stop_standing("kraft")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (
            StandingRequest(
                target="kafka:4.4.0", quorum="dynamic", runtime="ssh", hosts="hosts.toml"
            ),
            "--runtime process or docker",
        ),
        (StandingRequest(target="kafka:4.4.0", sasl="scram"), "--sasl scram needs ZooKeeper"),
        (
            StandingRequest(target="kafka:4.4.0", settings={"process.roles": "broker"}),
            "--controllers its nodes",
        ),
        (
            StandingRequest(target="kafka:4.4.0", settings={"no.such.setting": "1"}),
            "4.4.0 has no such setting",
        ),
    ],
)
def test_impossible_cluster_of_kraft_is_refused(request_: StandingRequest, reason: str) -> None:
    with pytest.raises(standing.BadRequest, match=reason):
        standing.start(request_)
