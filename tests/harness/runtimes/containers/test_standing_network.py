"""A standing cluster in containers is reached from this machine and from other containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import msgspec
import pytest
from kafka import KafkaConsumer

from tests.ports import free_port
from tests.waiting import until
from urteil.harness import standing
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.containers.images import ensure_images
from urteil.harness.standing import StandingCluster, StandingRequest
from urteil.harness.standing.ports import port_problem

NAME, TOPIC = "boxed", "alice-boxed"
LIBRARIES = "/opt/kafka/libs/*"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def tools(engine: Engine) -> str:
    """An image with Apache Kafka's tools."""
    return ensure_images(engine, ["kafka:3.9.1"])["kafka:3.9.1"]


@contextmanager
def boxed(request: StandingRequest) -> Iterator[StandingCluster]:
    cluster = standing.start(request)
    try:
        yield cluster
    finally:
        standing.stop_standing(request.name)


PLAIN = StandingRequest(name=NAME, runtime="docker", brokers=1)
SECURED = msgspec.structs.replace(PLAIN, first_broker_id=0, tls=True, sasl="scram", acl=True)


@pytest.mark.parametrize("target", ["urteil", pytest.param("kafka", marks=pytest.mark.thorough)])
def test_other_containers_use_a_secured_cluster_by_its_network(
    engine: Engine, tools: str, target: str
) -> None:
    port = free_port()
    while port_problem(port, 3):
        port = free_port()
    with boxed(msgspec.structs.replace(SECURED, target=target, port=port)) as cluster:
        assert cluster.bootstrap == [f"127.0.0.1:{port}"]
        assert cluster.zookeeper == f"127.0.0.1:{port + 1}"
        assert cluster.network == f"urteil-{NAME}"
        _, alice, _ = cluster.users
        to = ["--bootstrap-server", ",".join(cluster.network_bootstrap)]
        inside = "/clients/network/alice.properties"
        write = ["org.apache.kafka.tools.VerifiableProducer", *to, "--topic", TOPIC]
        written = run_beside(
            engine, tools, cluster, [*write, "--max-messages", "3", "--producer.config", inside]
        )
        assert '"sent":3,"acked":3' in written
        where = ["-server", cluster.network_zookeeper, "get", "/brokers/ids/0"]
        registered = run_beside(
            engine, tools, cluster, ["org.apache.zookeeper.ZooKeeperMain", *where]
        )
        assert f'"endpoints":["USERS://127.0.0.1:{port}","NETWORK://b0:' in registered
        config = json.loads(Path(alice.files["kafka-python"]).read_text())
        consumer = KafkaConsumer(
            TOPIC, **config, auto_offset_reset="earliest", group_id=f"{TOPIC}-group"
        )
        try:
            assert sorted(next(consumer).value for _ in range(3)) == [b"0", b"1", b"2"]
        finally:
            consumer.close()


def test_network_with_a_foreign_container_is_removed_with_its_cluster(
    engine: Engine, tools: str
) -> None:
    networks = engine.client.networks
    guest = None
    try:
        with boxed(PLAIN) as cluster:
            guest = engine.client.containers.run(
                tools, entrypoint="sleep", command=["600"], detach=True, network=cluster.network
            )
        until(lambda: not networks.list(names=[f"^urteil-{NAME}$"]))
        guest.reload()
        assert guest.status == "running"
    finally:
        if guest is not None:
            guest.remove(force=True)


def test_existing_network_of_that_name_is_rejected_with_remedy(engine: Engine) -> None:
    taken = engine.client.networks.create(f"urteil-{NAME}", internal=True)
    try:
        with pytest.raises(standing.StandingError, match=f"docker network rm urteil-{NAME}"):
            standing.start(PLAIN)
        assert engine.client.networks.list(names=[f"^urteil-{NAME}$"]) == [taken]
    finally:
        taken.remove()


def run_beside(engine: Engine, image: str, cluster: StandingCluster, tool: list[str]) -> str:
    """What one of Apache Kafka's tools prints in a container on the cluster's network."""
    try:
        said: bytes = engine.client.containers.run(
            image,
            entrypoint="java",
            command=["-cp", LIBRARIES, *tool],
            network=cluster.network,
            volumes={cluster.clients: {"bind": "/clients", "mode": "ro"}},
            remove=True,
            stderr=True,
        )
    except docker.errors.ContainerError as error:
        raise AssertionError(error.stderr.decode()) from error
    return said.decode()
