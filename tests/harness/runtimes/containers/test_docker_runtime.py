"""Clusters in containers: crashes, unplugged networks, limits, restarts, and removal."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from docker.models.containers import Container
from kafka import KafkaProducer

from tests.subscribed import subscribed
from tests.waiting import until
from urteil.chaos.observations import CLIENT, LabFailure, Link, NodeState, NotHealthy
from urteil.harness.cluster import Cluster
from urteil.harness.reaper import LABEL, start_reaper
from urteil.harness.run.runner import run_scenario
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.docker import DockerRuntime
from urteil.harness.runtimes.runtime import NodeSpec
from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.targets import UrteilTarget
from urteil.harness.verify.result import Status, Verdict

SPEC = ClusterSpec(brokers=2)
TOPIC = "kept"
LAB = """
import sys, time
from pathlib import Path
from urteil.harness.cluster import Cluster
from urteil.harness.reaper import start_reaper
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

with Cluster(ClusterSpec(brokers=1), UrteilTarget(), Path(sys.argv[1]), runtime="docker"):
    print(start_reaper(), flush=True)
    time.sleep(600)
"""
SCENARIO = Scenario(
    name="in-containers",
    workload=WorkloadSpec(rate_records_per_s=60),
    faults=(
        FaultSpec(fault="crash", target="leader", at_s=1, duration_s=5),
        FaultSpec(fault="unplug", target="follower", at_s=8, duration_s=2),
    ),
    duration_s=12,
    guarantees=("lost_write", "replica_divergence"),
    runtime="docker",
)


def left_of(engine: Engine, token: str) -> list[Any]:
    """Containers, networks and volumes of one lab that are there."""
    filters = {"label": f"{LABEL}={token}"}
    client = engine.client
    return [
        *client.containers.list(all=True, filters=filters, ignore_removed=True),
        *client.networks.list(filters=filters),
        *client.volumes.list(filters=filters),
    ]


def ours(engine: Engine, node: str) -> Container:
    """The container of a node of the newest cluster of this process."""
    filters = {"label": [f"org.urteil.node={node}", f"{LABEL}={start_reaper()}"]}
    newest: Container = engine.client.containers.list(filters=filters)[0]
    return newest


@pytest.fixture(scope="module")
def cluster(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("docker")
    with Cluster(SPEC, UrteilTarget(), folder, runtime="docker") as cluster:
        yield cluster
    assert list((folder / "nodes" / "b1" / "data").glob(f"{TOPIC}-*/*.log"))
    assert list((folder / "nodes" / "zk1" / "data").glob("version-2/log.*"))
    assert not left_of(engine, start_reaper())


def test_records_outlive_the_death_of_their_broker(cluster: Cluster) -> None:
    controls = cluster.controls()
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
    sent = [producer.send(TOPIC, b"%d" % number) for number in range(50)]
    assert all(future.get(timeout=60) for future in sent)
    producer.close()
    dead = [controls.kill(node) for node in cluster.plan.brokers]
    assert [(status.state, status.exit_code) for status in dead] == [(NodeState.DEAD, -9)] * 2
    controls.check()  # what the lab killed is not a failure of the lab
    for node in cluster.plan.brokers:
        assert controls.start(node).starts == 2
    controls.await_healthy(deadline_s=60)
    consumer = subscribed(
        TOPIC, cluster.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    assert sorted(int(next(consumer).value) for _ in range(50)) == list(range(50))
    ends = consumer.end_offsets(consumer.assignment())
    assert {place: consumer.position(place) for place in ends} == ends
    consumer.close()


def test_paused_node_continues_after_resume(cluster: Cluster) -> None:
    controls, link = cluster.controls(), Link(CLIENT, "b1")
    assert controls.pause("b1").state is NodeState.PAUSED
    assert not controls.net.probe(link, timeout_s=0.5).answered
    assert controls.resume("b1").state is NodeState.RUNNING
    until(lambda: controls.net.probe(link, timeout_s=0.5).answered)


def test_a_paused_node_dies_by_sigkill(cluster: Cluster) -> None:
    controls = cluster.controls()
    controls.pause("b1")
    assert controls.kill("b1").exit_code == -9
    controls.start("b1")
    controls.await_healthy(deadline_s=60)


def test_a_cut_link_is_silent_one_way_and_heals(cluster: Cluster) -> None:
    net, link = cluster.controls().net, Link("b1", "b2")
    net.cut([link])
    assert not net.probe(link, timeout_s=0.5).answered
    until(lambda: net.probe(Link("b2", "b1"), timeout_s=2).answered)
    net.heal_all()
    until(lambda: net.probe(link, timeout_s=2).answered)


def test_unplugged_node_returns_at_its_address(cluster: Cluster) -> None:
    controls = cluster.controls()
    around = [Link("b1", "b2"), Link("b2", "b1"), Link(CLIENT, "b2")]
    controls.containers.unplug("b2")
    controls.containers.unplug("b2")
    assert not any(controls.net.probe(link, timeout_s=0.5).answered for link in around)
    assert controls.status("b2").state is NodeState.RUNNING
    controls.containers.plug("b2")
    controls.containers.plug("b2")
    controls.net.heal_all()
    until(lambda: all(controls.net.probe(link, timeout_s=2).answered for link in around))
    controls.await_healthy(deadline_s=60)


def test_limits_act_on_a_running_node_and_are_removed(cluster: Cluster) -> None:
    net, boxes = cluster.controls().net, cluster.controls().containers
    tight = boxes.limit("b1", cpus=0.02, memory_mb=256)
    assert (tight.cpus, tight.memory_mb) == (0.02, 256)

    def throttled() -> int:
        for _ in range(50):  # some work
            net.probe(Link(CLIENT, "b1"), timeout_s=0.5)
        return boxes.limits("b1").throttled

    until(throttled)
    free = boxes.unlimit("b1")
    assert (free.cpus, free.memory_mb) == (None, None)


def test_ports_are_published_on_loopback_alone(cluster: Cluster, engine: Engine) -> None:
    filters = {"label": f"{LABEL}={start_reaper()}"}
    places = [
        place["HostIp"]
        for container in engine.client.containers.list(filters=filters)
        for places in container.attrs["NetworkSettings"]["Ports"].values()
        for place in places or []
    ]
    assert places
    assert set(places) == {engine.bind}


@pytest.mark.thorough
def test_removed_container_is_a_lab_failure(engine: Engine, tmp_path: Path) -> None:
    with Cluster(ClusterSpec(brokers=1), UrteilTarget(), tmp_path, runtime="docker") as cluster:
        ours(engine, "b1").remove(force=True)
        with pytest.raises(LabFailure, match="the container of b1 was removed"):
            cluster.controls().check()
        with pytest.raises(LabFailure, match="b1 did not come back"):
            cluster.close()


@pytest.mark.thorough
def test_a_cluster_is_ended_when_it_cannot_be_stopped(engine: Engine, tmp_path: Path) -> None:
    before = len(left_of(engine, start_reaper()))
    cluster = Cluster(ClusterSpec(brokers=1), UrteilTarget(), tmp_path, runtime="docker")
    cluster.start()
    ours(engine, "b1").remove(force=True)
    with pytest.raises(LabFailure, match="b1 did not come back"):
        cluster.stop()
    assert len(left_of(engine, start_reaper())) == before


@pytest.mark.thorough
def test_node_that_ends_during_start_is_reported_at_once(engine: Engine, tmp_path: Path) -> None:
    spec = ClusterSpec(brokers=1, config={"inter.broker.listener.name": "NO_SUCH_LISTENER"})
    cluster = Cluster(spec, UrteilTarget(), tmp_path, runtime="docker")
    with pytest.raises(NotHealthy, match="b1 ended with 1:"), cluster:
        pass


@pytest.mark.thorough
def test_incomplete_data_are_no_evidence(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(left_of(engine, start_reaper()))
    runtime = DockerRuntime(tmp_path, images=["broker"], zookeepers=1)
    home = tmp_path / "zk1"
    (home / "data").mkdir(parents=True)
    (home / "data" / "file").write_bytes(bytes(100_000))
    runtime.start("zk1", NodeSpec(argv=["sleep", "1000"], cwd=home))
    get_archive = Container.get_archive

    def cut(self: Container, path: str) -> tuple[list[bytes], Any]:
        chunks, stat = get_archive(self, path)
        return [b"".join(chunks)[:50_000]], stat

    monkeypatch.setattr(Container, "get_archive", cut)
    with pytest.raises(LabFailure, match="evidence of zk1 did not come back"):
        runtime.close()
    assert not (home / "data").exists()
    assert len(left_of(engine, start_reaper())) == before


def test_node_of_another_image_keeps_data_and_log(engine: Engine, tmp_path: Path) -> None:
    before = len(left_of(engine, start_reaper()))
    runtime = DockerRuntime(tmp_path, images=["broker"], zookeepers=1, later=["zookeeper"])
    home = tmp_path / "b1"
    home.mkdir()
    first = ["sh", "-c", "ls /opt; echo kept > data/file"]
    then = ["sh", "-c", "ls /opt; cat data/file"]
    for argv, image in ((first, "broker"), (then, "zookeeper"), (then, "zookeeper")):
        status = runtime.start("b1", NodeSpec(argv=argv, cwd=home, image=image))
        until(lambda: not runtime.is_alive("b1"))
    assert status.starts == 3
    assert runtime.log("b1").split() == ["urteil", "zookeeper", "kept", "zookeeper", "kept"]
    runtime.close()
    assert (home / "data" / "file").read_text() == "kept\n"
    assert (tmp_path / "logs" / "b1.log").read_text().count("kept") == 2
    assert len(left_of(engine, start_reaper())) == before


@pytest.mark.thorough
def test_an_upgrade_changes_the_images_of_brokers(engine: Engine, tmp_path: Path) -> None:
    asked = msgspec.structs.replace(SCENARIOS["upgrade"], seed=1, target="kafka", runtime="docker")
    run_dir, result = run_scenario(asked, out=tmp_path, engine="duckdb")
    assert result.verdict is Verdict.PASS, result.reasons
    assert "b3: kafka 3.8.0, protocol 3.8, then kafka 3.9.1" in result.faults[0].proof
    said = (run_dir / "logs" / "b1.log").read_text()
    assert re.findall(r"Kafka version: ([\d.]+)", said) == ["3.8.0", "3.9.1", "3.9.1"]


def test_killed_lab_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    lab = subprocess.Popen(
        [sys.executable, "-c", LAB, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert lab.stdout is not None
    token = lab.stdout.readline().strip()
    assert token
    assert len(left_of(engine, token)) >= 9
    lab.kill()
    lab.wait()
    until(lambda: not left_of(engine, token))


def test_a_run_in_containers_is_judged(engine: Engine, tmp_path: Path) -> None:
    run_dir, result = run_scenario(SCENARIO, out=tmp_path, engine="duckdb")
    assert result.verdict is Verdict.PASS, result.reasons
    assert [fault.acted for fault in result.faults] == [True, True]
    status = {guarantee.name: guarantee.status for guarantee in result.guarantees}
    assert status["replica_divergence"] is Status.HOLDS
    assert result.runtime == "docker"
    assert "--runtime docker" in result.command
    assert (run_dir / "logs" / "toxiproxy-b1.log").exists()
