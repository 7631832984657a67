"""TLS between brokers and to other client libraries, on a cluster of processes."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.client import AIOKafkaClient
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient

from tests.broker.security.secure_nodes import SecureNodes
from tests.broker.security.tls.certificates import pem_file
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import until
from urteil.harness.dependencies.kafka import kafka_tool

BROKER_PASSWORD, ALICE_PASSWORD, BOB_PASSWORD = "broker-Secret", "alice-Secret", "bob-Secret"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
BROKERS = f'{SCRAM} username="broker" password="{BROKER_PASSWORD}";'
PEOPLE = f'{PLAIN} user_bob="{BOB_PASSWORD}";'
SETTINGS = {
    "zookeeper.session.timeout.ms": "15000",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "2",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.internal.sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.internal.ssl.client.auth": "required",
    "listener.name.internal.connections.max.reauth.ms": "1500",
    "listener.name.internal.scram-sha-512.sasl.jaas.config": BROKERS,
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN,OAUTHBEARER",
    "listener.name.open.connections.max.reauth.ms": "3000",
    **{
        f"listener.name.{name}.{mechanism}.sasl.jaas.config": module
        for name in ("users", "open")
        for mechanism, module in (
            ("scram-sha-256", f"{SCRAM};"),
            ("scram-sha-512", f"{SCRAM};"),
            ("plain", PEOPLE),
            ("oauthbearer", f"{OAUTH};"),
        )
    },
}


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
    made = SecureNodes(
        tmp_path_factory.mktemp("tls"),
        zookeeper,
        "/tls",
        2,
        {"INTERNAL": "SASL_SSL", "CLIENT": "SSL", "USERS": "SASL_SSL", "OPEN": "SASL_PLAINTEXT"},
        "INTERNAL",
        **SETTINGS,
    )
    made.users = {"broker": BROKER_PASSWORD, "alice": ALICE_PASSWORD}
    with made as started:
        yield started


def as_user(
    nodes: SecureNodes,
    mechanism: str,
    user: str = "alice",
    password: str = ALICE_PASSWORD,
    listener: str = "USERS",
) -> dict[str, str]:
    """Return settings of confluent-kafka."""
    return {
        "bootstrap.servers": nodes.address(1, listener),
        "security.protocol": "SASL_PLAINTEXT" if listener == "OPEN" else "SASL_SSL",
        "ssl.ca.location": nodes.trust,
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def settings(nodes: SecureNodes) -> dict[str, str]:
    return {
        "bootstrap.servers": nodes.address(1, "CLIENT"),
        "security.protocol": "SSL",
        "ssl.ca.location": nodes.trust,
    }


def served_certificate(nodes: SecureNodes, broker: int, listener: str) -> str:
    return ssl.get_server_certificate(("127.0.0.1", nodes.addresses[broker][listener]))


def test_records_are_replicated_and_consumed(nodes: SecureNodes) -> None:
    admin = AdminClient(settings(nodes))
    admin.create_topics([NewTopic("orders", 2, 2)])["orders"].result(60)
    producer = Producer({**settings(nodes), "acks": "all", "enable.idempotence": True})
    sent = [f"value-{number}-{'x' * 5000}".encode() for number in range(2000)]
    for number, value in enumerate(sent):
        producer.produce("orders", value, partition=number % 2)
        producer.poll(0)
    assert producer.flush(60) == 0
    until(lambda: nodes.isr_size("orders", 0) == nodes.isr_size("orders", 1) == 2, "in sync")
    consumer = Consumer({**settings(nodes), "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    values: list[bytes] = []

    def all_read() -> bool:
        messages = consumer.consume(500, 0.5)
        assert all(message.error() is None for message in messages)
        values.extend(message.value() or b"" for message in messages)
        return len(values) >= len(sent)

    until(all_read, "all read")
    consumer.close()
    assert sorted(values) == sorted(sent)


def test_inter_broker_listener_requires_a_certificate(nodes: SecureNodes) -> None:
    context = ssl.create_default_context(cadata=nodes.authority.pem)
    address = ("127.0.0.1", nodes.addresses[1]["INTERNAL"])
    with socket.create_connection(address, timeout=60) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
            with pytest.raises(ssl.SSLError, match="certificate required"):
                secured.recv(1)
    issued = nodes.authority.issue("another broker")
    context.load_cert_chain(pem_file(nodes.folder / "peer.pem", issued.key_pem(), issued.pem))
    with socket.create_connection(address, timeout=60) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as secured:
            secured.sendall(bytes.fromhex("0000000a001200000000000affff"))  # ApiVersions
            assert secured.recv(4)


def test_new_certificate_applies_without_a_restart(nodes: SecureNodes) -> None:
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
        future.result(60)
    until(lambda: served_certificate(nodes, 1, "CLIENT") != before, "the new certificate")
    assert AdminClient(settings(nodes)).list_topics(timeout=60).brokers.keys() == {1, 2}


def test_unreadable_store_is_rejected_and_the_old_one_stays(nodes: SecureNodes) -> None:
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
            future.result(60)
    assert served_certificate(nodes, 2, "CLIENT") == before


@pytest.mark.parametrize("listener", ["USERS", "OPEN"])
@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [
        ("SCRAM-SHA-256", "alice", ALICE_PASSWORD),
        ("SCRAM-SHA-512", "alice", ALICE_PASSWORD),
        ("PLAIN", "bob", BOB_PASSWORD),
    ],
)
def test_other_client_libraries_authenticate(
    nodes: SecureNodes, listener: str, mechanism: str, user: str, password: str
) -> None:
    chosen = as_user(nodes, mechanism, user, password, listener)
    assert AdminClient(chosen).list_topics(timeout=60).brokers.keys() == {1, 2}
    admin = KafkaAdminClient(
        bootstrap_servers=nodes.address(1, listener),
        security_protocol=chosen["security.protocol"],
        ssl_cafile=nodes.trust,
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
    )
    assert len(admin.describe_cluster()["brokers"]) == 2
    admin.close()
    asyncio.run(_by_aiokafka(nodes, chosen))


async def _by_aiokafka(nodes: SecureNodes, chosen: dict[str, str]) -> None:
    client = AIOKafkaClient(
        bootstrap_servers=chosen["bootstrap.servers"],
        security_protocol=chosen["security.protocol"],
        ssl_context=ssl.create_default_context(cafile=nodes.trust),
        sasl_mechanism=chosen["sasl.mechanism"],
        sasl_plain_username=chosen["sasl.username"],
        sasl_plain_password=chosen["sasl.password"],
    )
    await client.bootstrap()
    try:
        assert len(client.cluster.brokers()) == 2
    finally:
        await client.close()


def test_client_authenticates_with_a_token(nodes: SecureNodes) -> None:
    chosen = as_user(nodes, "OAUTHBEARER") | {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=alice",
    }
    assert AdminClient(chosen).list_topics(timeout=60).brokers.keys() == {1, 2}


@pytest.mark.parametrize(
    ("mechanism", "user", "password", "why"),
    [
        ("SCRAM-SHA-256", "alice", "wrong", "invalid credentials with SASL mechanism SCRAM-SHA"),
        ("SCRAM-SHA-512", "nobody", "wrong", "invalid credentials with SASL mechanism SCRAM-SHA"),
        ("PLAIN", "bob", "wrong", "Invalid username or password"),
    ],
)
def test_failed_authentication_is_reported_to_the_client(
    nodes: SecureNodes, mechanism: str, user: str, password: str, why: str
) -> None:
    errors: list[str] = []
    client = AdminClient(
        {
            **as_user(nodes, mechanism, user, password),
            "error_cb": lambda error: errors.append(error.str()),
            "reconnect.backoff.ms": "5000",
        }
    )

    def refused() -> bool:
        client.poll(0.1)
        return any(why in error for error in errors)

    until(refused, "the reason")


def test_client_reauthenticates_across_sessions(nodes: SecureNodes) -> None:
    errors: list[str] = []
    producer = Producer(
        {
            **as_user(nodes, "SCRAM-SHA-256", listener="OPEN"),
            "error_cb": lambda error: errors.append(error.str()),
        }
    )
    admin = AdminClient(settings(nodes))
    admin.create_topics([NewTopic("long", 1, 2)])["long"].result(60)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        producer.produce("long", b"value")
        assert producer.flush(60) == 0
    assert errors == []
    until(lambda: nodes.isr_size("long", 0) == 2, "in sync")


def test_created_user_authenticates_and_deleted_user_does_not(nodes: SecureNodes) -> None:
    admin = AdminClient(settings(nodes))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion("carol, of=sales", info, b"carol-Secret")
    admin.alter_user_scram_credentials([change])["carol, of=sales"].result(60)
    described = admin.describe_user_scram_credentials(["carol, of=sales"])
    (credential,) = described["carol, of=sales"].result(60).scram_credential_infos
    assert (credential.mechanism, credential.iterations) == (ScramMechanism.SCRAM_SHA_256, 4096)
    everybody = admin.describe_user_scram_credentials(None).result(60)
    assert set(everybody) == {"alice", "broker", "carol, of=sales"}

    def comes_in() -> bool:
        user = as_user(nodes, "SCRAM-SHA-256", "carol, of=sales", "carol-Secret")
        client = AdminClient({**user, "error_cb": lambda _: None})
        try:
            return client.list_topics(timeout=2).brokers.keys() == {1, 2}
        except KafkaException:
            return False

    until(comes_in, "carol comes in")
    away = UserScramCredentialDeletion("carol, of=sales", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([away])["carol, of=sales"].result(60)
    until(lambda: not comes_in(), "carol does not come in")


def test_apache_kafkas_tool_authenticates_and_sets_a_password(nodes: SecureNodes) -> None:
    client = nodes.folder / "client.properties"
    client.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={SCRAM} username="alice" password="{ALICE_PASSWORD}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={nodes.trust}\n"
    )
    arguments = [
        "--bootstrap-server", nodes.address(1, "USERS"), "--command-config", str(client),
        "--alter", "--entity-type", "users", "--entity-name", "dora",
        "--add-config", "SCRAM-SHA-512=[iterations=8192,password=dora-Secret]",
    ]  # fmt: skip
    done = subprocess.run(
        kafka_tool("kafka.admin.ConfigCommand", arguments),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    admin = AdminClient(settings(nodes))
    described = admin.describe_user_scram_credentials(["dora"])
    (credential,) = described["dora"].result(60).scram_credential_infos
    assert (credential.mechanism, credential.iterations) == (ScramMechanism.SCRAM_SHA_512, 8192)


def test_logs_contain_no_secret(nodes: SecureNodes) -> None:
    """Runs last, after all successes and failures above."""
    secrets = [BROKER_PASSWORD, ALICE_PASSWORD, BOB_PASSWORD, "carol-Secret", "dora-Secret"]
    secrets += ["PRIVATE KEY"]
    stored, _ = nodes.zk.get("/config/users/alice")
    secrets += re.findall(r"(?:stored|server)_key=([^,]+)", stored.decode())
    for broker in nodes.addresses:
        text = nodes.log(broker).read_text()
        assert len(text) > 1000
        assert [secret for secret in secrets if secret in text] == []
