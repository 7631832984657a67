"""TLS between brokers and to clients that others wrote, on a cluster of processes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.broker.security.certificates import pem_file
from tests.broker.security.secure_nodes import SecureNodes
from tests.broker.server.nodes import until
from tests.broker.zookeeper.server import ZooKeeperServer


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(Path(tmp_path_factory.mktemp("zk")))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def nodes(
    tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer
) -> Iterator[SecureNodes]:
    with SecureNodes(
        tmp_path_factory.mktemp("tls"),
        zookeeper,
        "/tls",
        2,
        {"INTERNAL": "SSL", "CLIENT": "SSL"},
        "INTERNAL",
        **{
            "listener.name.internal.ssl.client.auth": "required",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "2",
        },
    ) as started:
        yield started


def settings(nodes: SecureNodes) -> dict[str, str]:
    return {
        "bootstrap.servers": nodes.address(1, "CLIENT"),
        "security.protocol": "SSL",
        "ssl.ca.location": nodes.trust,
    }


def served_certificate(nodes: SecureNodes, broker: int, listener: str) -> str:
    return ssl.get_server_certificate(("127.0.0.1", nodes.addresses[broker][listener]))


def test_records_are_replicated_and_come_back(nodes: SecureNodes) -> None:
    admin = AdminClient(settings(nodes))
    admin.create_topics([NewTopic("orders", 2, 2)])["orders"].result(20)
    producer = Producer({**settings(nodes), "acks": "all", "enable.idempotence": True})
    sent = [f"value-{number}-{'x' * 5000}".encode() for number in range(2000)]
    for number, value in enumerate(sent):
        producer.produce("orders", value, partition=number % 2)
        producer.poll(0)
    assert producer.flush(30) == 0
    until(lambda: nodes.isr_size("orders", 0) == nodes.isr_size("orders", 1) == 2, "in sync")
    consumer = Consumer({**settings(nodes), "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found: list[bytes] = []

    def all_read() -> bool:
        messages = consumer.consume(500, 0.5)
        assert all(one.error() is None for one in messages)
        found.extend(one.value() or b"" for one in messages)
        return len(found) >= len(sent)

    until(all_read, "all read")
    consumer.close()
    assert sorted(found) == sorted(sent)


def test_between_brokers_nobody_comes_in_without_a_certificate(nodes: SecureNodes) -> None:
    context = ssl.create_default_context(cadata=nodes.authority.pem)
    address = ("127.0.0.1", nodes.addresses[1]["INTERNAL"])
    with socket.create_connection(address, timeout=10) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
            with pytest.raises(ssl.SSLError, match="certificate required"):
                secured.recv(1)
    issued = nodes.authority.issue("another broker")
    context.load_cert_chain(pem_file(nodes.folder / "peer.pem", issued.key_pem(), issued.pem))
    with socket.create_connection(address, timeout=10) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
            secured.sendall(bytes.fromhex("0000000a001200000000000affff"))  # ApiVersions
            assert secured.recv(4)


def test_a_new_certificate_is_taken_on_without_a_restart(nodes: SecureNodes) -> None:
    before = served_certificate(nodes, 1, "CLIENT")
    nodes.renew(1)
    assert served_certificate(nodes, 1, "CLIENT") == before
    admin = AdminClient(settings(nodes))
    entry = ConfigEntry(
        "listener.name.client.ssl.keystore.location",
        str(nodes.folder / "broker-1.pem"),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)
    until(lambda: served_certificate(nodes, 1, "CLIENT") != before, "the new certificate")
    assert AdminClient(settings(nodes)).list_topics(timeout=20).brokers.keys() == {1, 2}


def test_a_store_that_cannot_be_read_is_refused_and_what_stands_stays(nodes: SecureNodes) -> None:
    before = served_certificate(nodes, 2, "CLIENT")
    bad = pem_file(nodes.folder / "bad.pem", "no key at all")
    entry = ConfigEntry(
        "listener.name.client.ssl.keystore.location",
        bad,
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.BROKER, "2", incremental_configs=[entry])
    admin = AdminClient(settings(nodes))
    for future in admin.incremental_alter_configs([resource]).values():
        with pytest.raises(Exception, match=r"bad\.pem"):
            future.result(20)
    assert served_certificate(nodes, 2, "CLIENT") == before
