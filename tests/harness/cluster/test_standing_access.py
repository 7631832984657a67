"""Standing clusters: their client files work in real clients, on both targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka import KafkaError as KafkaProblem
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from tests.ports import free_port
from urteil.cli.exit_codes import EXIT_WRONG_USAGE
from urteil.cli.main import exit_code
from urteil.harness import standing
from urteil.harness.cluster.zookeeper_state import ZooKeeperState
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.standing import StandingCluster, StandingRequest
from urteil.harness.standing.ports import port_problem
from urteil.harness.standing.state_file import User

NAME = "access"
RECORDS = [f"value {number}" for number in range(3)]
ANSWER_S = 30
TOPIC = "alice-topic"


@contextmanager
def standing_cluster(request: StandingRequest) -> Iterator[StandingCluster]:
    cluster = standing.start(request)
    try:
        yield cluster
    finally:
        standing.stop_standing(request.name)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def secured(
    target: str, *, tls: bool = False, sasl: str = "", acl: bool = False
) -> StandingRequest:
    return StandingRequest(name=NAME, brokers=1, target=target, tls=tls, sasl=sasl, acl=acl)


SECURED = [
    secured("urteil", tls=True, sasl="scram", acl=True),
    *(
        pytest.param(request, marks=pytest.mark.thorough)
        for request in (
            secured("kafka", tls=True, sasl="scram", acl=True),
            secured("urteil", tls=True, acl=True),
            secured("kafka", tls=True, acl=True),
            secured("urteil", sasl="plain", acl=True),
            secured("kafka", sasl="plain", acl=True),
            secured("urteil", tls=True, sasl="plain"),
            secured("kafka", sasl="scram"),
            secured("urteil", tls=True),
        )
    ),
]


def title(request: StandingRequest) -> str:
    acl = "ACL" if request.acl else "no-ACL"
    return "-".join([request.target, request.security.protocol, request.sasl, acl])


@pytest.mark.parametrize("request_", SECURED, ids=title)
def test_written_configurations_work_in_each_kind_of_client(
    request_: StandingRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    request = request_
    with standing_cluster(request) as cluster:
        if request.tls:
            assert exit_code(["wire", "--cluster", NAME, "--seconds", "1"]) == EXIT_WRONG_USAGE
            assert "client->b1: its clients use TLS" in capsys.readouterr().err
        assert [user.name for user in cluster.users] == ["admin", "alice", "bob"]
        admin, alice, bob = cluster.users
        with_kafka_python(alice, f"{TOPIC}-1")
        with_librdkafka(alice, f"{TOPIC}-2")
        with_java(alice, f"{TOPIC}-3")
        assert {f"{TOPIC}-{number}" for number in (1, 2, 3)} <= set(topics(admin))
        if request.acl:
            for refused in (with_kafka_python, with_librdkafka):
                with pytest.raises((KafkaError, KafkaException), match=r"(?i)authoriz"):
                    refused(bob, TOPIC)
            assert topics(bob) == []
        else:
            assert topics(bob) == topics(admin)
        if request.sasl:
            with pytest.raises(KafkaError):
                topics(with_password(alice, "wrong"))


def test_plain_cluster_has_configurations_for_each_kind_of_client() -> None:
    with standing_cluster(StandingRequest(name=NAME, brokers=1)) as cluster:
        (client,) = cluster.users
        for number, use in enumerate((with_kafka_python, with_librdkafka, with_java)):
            use(client, f"{TOPIC}-{number}")


@pytest.fixture
def free_port_block() -> int:
    """The first of five free ports."""
    while port_problem(port := free_port(), 5):
        continue
    return port


@pytest.mark.parametrize("target", ["urteil", pytest.param("kafka", marks=pytest.mark.thorough)])
def test_options_set_addresses_ids_racks_and_settings(target: str, free_port_block: int) -> None:
    request = StandingRequest(
        name=NAME,
        brokers=2,
        target=target,
        port=free_port_block,
        first_broker_id=0,
        racks=("left", "right"),
        settings={"num.partitions": "7", "log.retention.hours": "5"},
    )
    for _ in range(2 if target == "urteil" else 1):  # the same at every start
        with standing_cluster(request) as cluster:
            first = f"127.0.0.1:{free_port_block}"
            assert cluster.bootstrap == [first, f"127.0.0.1:{free_port_block + 1}"]
            assert cluster.zookeeper == f"127.0.0.1:{free_port_block + 2}"
            assert cluster.defaults["num.partitions"] == "7"
            assert cluster.defaults["log.retention.hours"] == "5"
            registered = registrations(cluster)
            assert registered["b0"]["rack"] == "left"
            assert registered["b1"]["rack"] == "right"
            assert registered["b0"]["endpoints"][0].endswith(f"://{first}")
            assert f"{registered['b0']['host']}:{registered['b0']['port']}" == first
            (client,) = cluster.users
            with_kafka_python(client, TOPIC)
            brokers = described(client)["brokers"]
            assert {broker["broker_id"]: broker["rack"] for broker in brokers} == {
                0: "left",
                1: "right",
            }


def registrations(cluster: StandingCluster) -> dict[str, dict[str, object]]:
    state = ZooKeeperState(cluster.zookeeper)
    state.start(deadline_s=ANSWER_S)
    try:
        return state.registrations()
    finally:
        state.close()


def settings(user: User, **more: object) -> dict[str, object]:
    return {**json.loads(Path(user.files["kafka-python"]).read_text()), **more}


def with_password(user: User, password: str) -> User:
    file = Path(user.files["kafka-python"]).with_name("other.json")
    file.write_text(json.dumps(settings(user, sasl_plain_password=password)))
    return User(name=user.name, files={"kafka-python": str(file)})


def described(user: User) -> dict[str, list[dict[str, object]]]:
    admin = KafkaAdminClient(**settings(user))
    try:
        return dict(admin.describe_cluster())
    finally:
        admin.close()


def topics(user: User) -> list[str]:
    admin = KafkaAdminClient(**settings(user))
    try:
        return sorted(name for name in admin.list_topics() if not name.startswith("__"))
    finally:
        admin.close()


def with_kafka_python(user: User, topic: str) -> None:
    producer = KafkaProducer(**settings(user))
    try:
        for value in RECORDS:
            producer.send(topic, value.encode()).get(ANSWER_S)
    finally:
        producer.close()
    earliest = {"auto_offset_reset": "earliest", "group_id": f"{topic}-group"}
    consumer = KafkaConsumer(topic, **settings(user, **earliest))
    try:
        read = [next(consumer).value.decode() for _ in RECORDS]
    finally:
        consumer.close()
    assert sorted(read) == RECORDS


def with_librdkafka(user: User, topic: str) -> None:
    lines = Path(user.files["librdkafka"]).read_text().splitlines()
    config = dict(line.split("=", 1) for line in lines)
    producer = Producer(config)
    errors: list[KafkaException] = []

    def report(error: KafkaProblem | None, _: Message) -> None:
        if error is not None:
            errors.append(KafkaException(error))

    for value in RECORDS:
        producer.produce(topic, value.encode(), on_delivery=report)
    assert producer.flush(ANSWER_S) == 0
    for failure in errors:
        raise failure
    earliest = {"auto.offset.reset": "earliest", "group.id": f"{topic}-group"}
    consumer = Consumer({**config, **earliest})
    consumer.subscribe([topic])
    try:
        read = [message.value() for message in consumer.consume(len(RECORDS), ANSWER_S)]
    finally:
        consumer.close()
    assert sorted(read) == [value.encode() for value in RECORDS]


def with_java(user: User, topic: str) -> None:
    file = user.files["java"]
    servers = next(
        line.partition("=")[2]
        for line in Path(file).read_text().splitlines()
        if line.startswith("bootstrap.servers=")
    )
    to = ["--bootstrap-server", servers, "--topic", topic]
    run("kafka.tools.ConsoleProducer", *to, "--producer.config", file, given="\n".join(RECORDS))
    reading = ["--from-beginning", "--max-messages", str(len(RECORDS)), "--group", f"{topic}-group"]
    consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    read = run(consumer, *to, "--consumer.config", file, *reading)
    assert sorted(read.splitlines()) == RECORDS


def run(main_class: str, *args: str, given: str = "") -> str:
    done = subprocess.run(
        kafka_tool(main_class, args),
        input=given,
        capture_output=True,
        text=True,
        timeout=3 * ANSWER_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SHELL = """
set -eu
eval "$($URTEIL cluster up --name shell --brokers 1 --sasl plain --export)"
printf '%s\\n' "$CLUSTER" "$BOOTSTRAP" "$ZOOKEEPER" "$SASL_USERNAME" "$SASL_PASSWORD"
cat "$JAVA_CONFIG" "$LIBRDKAFKA_CONFIG" "$KAFKA_PYTHON_CONFIG" > /dev/null
test "$($URTEIL cluster status --export)" = "$($URTEIL cluster status --name shell --export)"
$URTEIL cluster status | grep -q '^cluster    shell: 1 brokers'
$URTEIL cluster status --json
$URTEIL cluster down --name shell > /dev/null
test "$($URTEIL cluster status)" = "no cluster stands; urteil cluster up starts one"
test "$($URTEIL cluster status --json)" = "[]"
! $URTEIL cluster status --export 2> /dev/null
"""


def test_shell_has_addresses_and_users_in_variables() -> None:
    env = {**os.environ, "URTEIL": f"{sys.executable} -m urteil"}
    done = subprocess.run(["sh", "-c", SHELL], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    name, bootstrap, zookeeper, user, password, *rest = done.stdout.splitlines()
    assert (name, user, password) == ("shell", "admin", "admin-secret")
    (described,) = json.loads("\n".join(rest))
    assert described["bootstrap"] == bootstrap.split(",")
    assert described["zookeeper"] == zookeeper
    assert described["defaults"]["min.insync.replicas"] == "1"
    assert "fault_key" not in described
