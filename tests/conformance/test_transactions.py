"""Transactions of our broker with librdkafka, and their logs in Apache Kafka's tools."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition

from tests.conformance.conftest import QUICK
from tests.conformance.side import Side
from tests.conformance.transactional import WAIT_S, producer, read, reader, send, settle
from tests.conformance.transactions import coordinator
from tests.waiting import until
from urteil.harness.cluster import Cluster
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

CONFIG = QUICK | {
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    spec = ClusterSpec(brokers=3, config=CONFIG)
    with Cluster(spec, UrteilTarget(), tmp_path_factory.mktemp("transactions")) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    side = Side("ours", cluster.bootstrap)
    name = re.sub(r"\W", "-", request.node.name)[:60]
    yield side.create(name, [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
    side.close()


def test_read_committed_consumer_sees_committed_records_alone(cluster: Cluster, topic: str) -> None:
    client = producer(cluster, "visible")
    for kind in ("kept", "dropped", "kept too"):
        client.begin_transaction()
        send(client, topic, [f"{kind} {n}" for n in range(9)])
        if kind == "dropped":
            client.abort_transaction(WAIT_S)
        else:
            client.commit_transaction(WAIT_S)
    client.begin_transaction()
    send(client, topic, ["open"] * 3)
    committed = read(cluster, topic, "read_committed")
    assert len(committed) == 18
    assert not [value for value in committed if not value.startswith("kept")]
    assert len(read(cluster, topic, "read_uncommitted")) == 30
    client.abort_transaction(WAIT_S)


def test_read_process_write_processes_each_record_once(cluster: Cluster, topic: str) -> None:
    """Offsets are committed with the transaction; an aborted round is processed again."""
    source = producer(cluster, "source")
    source.begin_transaction()
    send(source, topic, [f"in {n}" for n in range(60)])
    source.commit_transaction(WAIT_S)
    worker = producer(cluster, "worker")
    left = 60
    round_number = 0
    while left:
        round_number += 1
        consumer = reader(cluster, **{"group.id": "w", "isolation.level": "read_committed"})
        consumer.subscribe([topic])
        taken = [message for message in consumer.consume(17, 5) if not message.error()]
        taken = [message for message in taken if message.value().startswith(b"in ")]
        worker.begin_transaction()
        for message in taken:
            worker.produce(topic, b"out " + message.value()[3:], partition=message.partition())
        positions = consumer.position(consumer.assignment())
        known = [place for place in positions if place.offset >= 0]
        worker.send_offsets_to_transaction(known, consumer.consumer_group_metadata(), WAIT_S)
        if round_number == 2:
            worker.abort_transaction(WAIT_S)
        else:
            worker.commit_transaction(WAIT_S)
            left -= len(taken)
        consumer.close()
        assert round_number < 60
    out = [value for value in read(cluster, topic, "read_committed") if value.startswith("out")]
    assert sorted(out) == sorted(f"out {n}" for n in range(60))


def test_zombie_producer_is_fenced(cluster: Cluster, topic: str) -> None:
    zombie = producer(cluster, "haunted")
    zombie.begin_transaction()
    send(zombie, topic, ["of the zombie"] * 3)
    heir = producer(cluster, "haunted")
    heir.begin_transaction()
    send(heir, topic, ["of the heir"] * 3)
    heir.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(WAIT_S)
    assert refused.value.args[0].fatal()
    assert read(cluster, topic, "read_committed") == ["of the heir"] * 3


def test_transaction_above_its_timeout_is_aborted(cluster: Cluster, topic: str) -> None:
    """It no longer blocks read_committed consumers."""
    slow = producer(cluster, "slow", **{"transaction.timeout.ms": 1000})
    slow.begin_transaction()
    send(slow, topic, ["too late"] * 3)
    quick = producer(cluster, "quick")
    quick.begin_transaction()
    send(quick, topic, ["in time"] * 3)
    quick.commit_transaction(WAIT_S)
    until(lambda: read(cluster, topic, "read_committed") == ["in time"] * 3, deadline_s=WAIT_S)
    with pytest.raises(KafkaException):
        slow.commit_transaction(WAIT_S)


def dump(cluster: Cluster, folder: str, *options: str) -> str:
    """What DumpLogSegments prints of every log of that name on one broker."""
    data = next(iter(cluster.data_dirs().values()))
    files = sorted(Path(data).glob(f"{folder}-*/*.log"))
    args = ["--files", ",".join(map(str, files)), *options]
    argv = kafka_tool("kafka.tools.DumpLogSegments", args)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dump_tool_reads_transaction_state_and_offsets(cluster: Cluster, topic: str) -> None:
    client = producer(cluster, "dumped", **{"transaction.timeout.ms": 43210})
    client.begin_transaction()
    send(client, topic, ["value"])
    consumer = reader(cluster, **{"group.id": "dumped group"})
    consumer.subscribe([topic])

    def is_assigned() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    until(is_assigned, deadline_s=WAIT_S)
    where = [TopicPartition(topic, 0, 1)]
    client.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), WAIT_S)
    client.commit_transaction(WAIT_S)
    client.begin_transaction()
    send(client, topic, ["another"])
    client.abort_transaction(WAIT_S)
    consumer.close()
    settle(cluster)
    output = dump(cluster, "__transaction_state", "--transaction-log-decoder")
    own_lines = [line for line in output.splitlines() if "transactionalId=dumped " in line]
    states = re.findall(r"state=(\w+)", " ".join(own_lines))
    ended = [f"{step}{end}" for end in ("Commit", "Abort") for step in ("Prepare", "Complete")]
    assert states[0] == "Empty"
    assert [state for state in states if state in ended] == ended, own_lines
    assert "txnTimeoutMs=43210" in own_lines[-1]
    output = dump(cluster, "__consumer_offsets", "--offsets-decoder")
    assert f'{{"group":"dumped group","topic":"{topic}","partition":0}}' in output, output[-3000:]


def test_transactions_tool_finds_and_aborts_a_hanging_transaction(
    cluster: Cluster, topic: str
) -> None:
    hanging = producer(cluster, "hanging", **{"transaction.timeout.ms": 600_000})
    hanging.begin_transaction()
    send(hanging, topic, ["held up"])
    bootstrap = ",".join(cluster.bootstrap)

    def tool(*args: str) -> str:
        argv = kafka_tool(
            "org.apache.kafka.tools.TransactionsCommand", ["--bootstrap-server", bootstrap, *args]
        )
        done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    listed = next(line for line in tool("list").splitlines() if line.startswith("hanging"))
    assert listed.split()[-1] == "Ongoing"
    described = tool("describe", "--transactional-id", "hanging")
    assert f"{topic}-0" in described
    producers = tool("describe-producers", "--topic", topic, "--partition", "0").splitlines()
    (row,) = [line.split() for line in producers[1:] if line.strip()]
    assert row[-1] == "0"
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert read(cluster, topic, "read_committed") == []
    assert read(cluster, topic, "read_uncommitted") == ["held up"]


def test_decided_transaction_survives_every_coordinator(cluster: Cluster, topic: str) -> None:
    """The last test of this cluster: brokers are killed, one after another."""
    client = producer(cluster, "bereaved")
    side = Side("ours", cluster.bootstrap)
    for broker in cluster.controls().brokers:
        client.begin_transaction()
        send(client, topic, [f"{broker} {n}" for n in range(6)])
        cluster.controls().kill(broker)
        client.commit_transaction(2 * WAIT_S)
        cluster.controls().start(broker)
        cluster.await_healthy(deadline_s=WAIT_S)
        assert coordinator(side, "bereaved") > 0
    side.close()
    assert len(read(cluster, topic, "read_committed")) == 18
