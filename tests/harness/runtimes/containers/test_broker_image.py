"""The broker's image for users: variables, mounted file, health, mutants."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import docker
import pytest

from tests.waiting import until
from urteil.compose.broker import settings
from urteil.compose.broker.health import first_listener
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.kafka import kafka_classpath
from urteil.harness.runtimes.containers.engine import Engine
from urteil.harness.runtimes.containers.images import ensure_images

VARIABLES = {
    "KAFKA_LOG_DIRS": "/urteil/data",
    "KAFKA_ZOOKEEPER_CONNECT": "zk:2181",
    "KAFKA_A__B___C": "x",
    "KAFKA_LISTENER_NAME_INTERNAL_SSL_KEY_PASSWORD": "p",
    "KAFKA_HEAP_OPTS": "-Xmx1g",
    "KAFKA_OPTS": "-Dx=y",
    "OTHER_LOG_DIRS": "no",
}
HEALTHY_S = 90.0


def await_health(container: Any) -> None:
    """Wait until Docker's health check passes; an engine's events do not cover the past."""

    def healthy() -> bool:
        container.reload()
        return bool(container.attrs["State"].get("Health", {}).get("Status") == "healthy")

    try:
        until(healthy, container.name, deadline_s=HEALTHY_S)
    finally:
        print(container.logs().decode())  # seen where it is not


@pytest.fixture(scope="module")
def images(engine: Engine) -> dict[str, str]:
    return ensure_images(engine, ["broker", "zookeeper"], print)


@pytest.fixture(scope="module")
def cluster(engine: Engine, images: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A ZooKeeper and a broker that has its settings from variables."""
    name = f"urteil-test-{uuid4().hex[:8]}"
    client, started = engine.client, dict[str, Any]()
    network = client.networks.create(name)
    try:
        started["zk"] = client.containers.run(
            images["zookeeper"], detach=True, network=name, name=f"{name}-zk", hostname="zk"
        )
        await_health(started["zk"])  # as compose's `depends_on` does
        started["broker"] = client.containers.run(
            images["broker"],
            detach=True,
            network=name,
            name=f"{name}-broker",
            environment={
                "KAFKA_BROKER_ID": "7",
                "KAFKA_ZOOKEEPER_CONNECT": f"{name}-zk:2181",
                "KAFKA_LISTENERS": "PLAINTEXT://:19092",
                "KAFKA_LOG_DIRS": "/urteil/data/logs",
            },
        )
        yield started
    finally:
        for container in started.values():
            container.remove(force=True, v=True)
        network.remove()


def test_image_reads_settings_from_variables_and_becomes_healthy(cluster: dict[str, Any]) -> None:
    await_health(cluster["broker"])
    read = cluster["broker"].exec_run(["cat", "/urteil/data/logs/meta.properties"])
    assert b"broker.id=7" in read.output


def test_broker_answers_the_health_check_on_its_own_listener(cluster: dict[str, Any]) -> None:
    asked = cluster["broker"].exec_run(["python", "-P", "-m", "urteil.compose.broker.health"])
    assert (asked.exit_code, asked.output) == (0, b"127.0.0.1:19092 answers with error code 0\n")


def test_no_process_of_the_image_runs_as_root(cluster: dict[str, Any]) -> None:
    for container in cluster.values():
        status = container.exec_run(["sh", "-c", "cat /proc/[0-9]*/status"]).output.decode()
        lines_printed = re.findall(r"^Name:\s+(.+)(?:\n.+?)*?\nUid:\s+(\d+)\s+(\d+)", status, re.M)
        # the engine's own, about to become a health check's, are in there for a moment
        users = [tuple(ids) for name, *ids in lines_printed if not name.startswith("runc:[")]
        assert len(users) > 1
        assert set(users) == {("1000", "1000")}
        assert container.exec_run(["touch", "/urteil/x"]).exit_code == 0
        assert container.exec_run(["touch", "/opt/x"]).exit_code != 0


def run(engine: Engine, image: str, *argv: str, **options: Any) -> str:
    options = {"remove": True, "network_mode": "none", "stderr": True} | options
    output: bytes = engine.client.containers.run(image, list(argv), **options)
    return output.decode()


def test_health_fails_where_no_broker_listens(engine: Engine, images: dict[str, str]) -> None:
    argv = ("python", "-P", "-m", "urteil.compose.broker.health")
    with pytest.raises(docker.errors.ContainerError) as failed:
        run(engine, images["broker"], *argv)
    assert failed.value.exit_status == 1


def test_a_mutant_can_be_launched(engine: Engine, images: dict[str, str]) -> None:
    launch = "python -P -u -m urteil.suites.mutants.launch"
    script = f"{launch} no_crc_check -- /urteil/none; {launch} nobody -- x 2>&1; echo $?"
    lines_printed = run(engine, images["broker"], "sh", "-c", script).splitlines()
    assert "No such file" in lines_printed[0], "the broker started, patched, and missed its file"
    assert "no mutant named 'nobody'" in lines_printed[1]
    assert lines_printed[2] == "254"


def test_image_has_every_codec(engine: Engine, images: dict[str, str]) -> None:
    script = (
        "from urteil.broker.wire.compression import *\n"
        "for c in Compression: print(len(decompress(c, compress(c, b'x' * 999))))"
    )
    assert run(engine, images["broker"], "python", "-c", script).split() == ["999"] * 5


def test_image_serves_as_pause_container(engine: Engine, images: dict[str, str]) -> None:
    for image in images.values():
        assert run(engine, image, "sleep", "0") == ""


def test_variables_become_settings() -> None:
    assert settings.from_variables(VARIABLES) == {
        "log.dirs": "/urteil/data",
        "zookeeper.connect": "zk:2181",
        "a_b-c": "x",
        "listener.name.internal.ssl.key.password": "p",
    }


def test_variables_become_settings_as_in_apache_kafka(tmp_path: Path) -> None:
    """The oracle is the class that Apache Kafka's own images start with."""
    for name in ("default", "mounted", "final"):
        (tmp_path / name).mkdir()
    for name in ("server.properties", "log4j.properties", "tools-log4j.properties"):
        (tmp_path / "default" / name).touch()
    folders = [
        f"--{name}-configs-dir={tmp_path / name}" for name in ("default", "mounted", "final")
    ]
    main = "kafka.docker.KafkaDockerWrapper"
    argv = [java(), "-XX:TieredStopAtLevel=1", "-cp", kafka_classpath(), main, "setup", *folders]
    env = {**os.environ, **{k: v for k, v in VARIABLES.items() if k != "KAFKA_HEAP_OPTS"}}
    subprocess.run(argv, env=env, capture_output=True, timeout=240)
    written = (tmp_path / "final" / "server.properties").read_text()
    theirs = dict(re.findall(r"^([^=#\s]+)=(.*)$", written, re.MULTILINE))
    ours = settings.from_variables(VARIABLES)
    assert {name: theirs.get(name) for name in ours} == ours
    assert set(theirs) - set(ours) <= {"advertised.listeners", "opts"}


@pytest.mark.parametrize(
    ("listeners", "where"),
    [
        ("PLAINTEXT://:9092", ("127.0.0.1", 9092)),
        ("A://0.0.0.0:1,B://127.0.0.9:2", ("127.0.0.1", 1)),
        ("A://127.0.0.9:2", ("127.0.0.9", 2)),
        ("A://[::1]:3", ("::1", 3)),
    ],
)
def test_health_check_uses_the_first_listener(listeners: str, where: tuple[str, int]) -> None:
    assert first_listener({"listeners": listeners}) == where
