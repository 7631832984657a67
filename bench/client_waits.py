"""How long ApiVersions requests of one client wait while another client sends a large request.

`python bench/client_waits.py [--elements N] [--only WORD] [--target kafka] [--real]` prints a line
for each request: the longest wait in ms, the time of the answer and the growth of the broker's
memory. One broker on a real ZooKeeper. Most elements are in error; `--real` instead creates N
topics and users, extends, describes and finds them.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from tests.broker.nodes import Nodes
from tests.broker.waits.bystander import Bystander, Client, framed
from tests.broker.waits.wide_requests import wide_requests
from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.wire import messages as m
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget

PATIENCE_S = 60.0
Broker = tuple[str, int, int]
"""Host, port and process id."""
Request = tuple[str, ApiKey, int, Message]


@click.command()
@click.option("--elements", default=100_000, show_default=True)
@click.option("--only", default="", help="Requests with this word in their name.")
@click.option("--target", type=click.Choice(["urteil", "kafka"]), default="urteil")
@click.option("--real", is_flag=True, help="Requests that succeed.")
def main(elements: int, only: str, target: str, real: bool) -> None:
    """Measure every wide request."""
    requests = real_requests(elements) if real else wide_requests(elements)
    with tempfile.TemporaryDirectory(prefix="urteil-waits-") as name:
        start = our_broker if target == "urteil" else apache_kafka
        with start(Path(name)) as broker:
            for row, key, version, request in requests:
                if only.upper() in row.upper():
                    click.echo(measured(broker, row, framed(key, version, request)))


@contextlib.contextmanager
def our_broker(folder: Path) -> Iterator[Broker]:
    """A broker of ours."""
    zookeeper = ZooKeeperServer(folder)
    zookeeper.start()
    try:
        settings = {"offsets_topic_replication_factor": "1"}
        with Nodes(folder, zookeeper, "/waits", 1, **settings) as nodes:
            yield "127.0.0.1", nodes.ports[1], nodes.processes[1].pid
    finally:
        zookeeper.kill()


@contextlib.contextmanager
def apache_kafka(folder: Path) -> Iterator[Broker]:
    """An Apache Kafka broker, past its Toxiproxy."""
    settings = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "3"}
    spec = ClusterSpec(brokers=1, zookeepers=1, config=settings)
    with Cluster(spec, KafkaTarget(), folder / "run") as cluster:
        pid = cluster.runtime.status("b1").pid
        assert pid is not None
        yield *cluster.plan.direct_address("b1"), pid


def real_requests(count: int) -> Iterator[Request]:
    """Requests that succeed, in an order in which they can."""
    topics = [f"topic.{n}" for n in range(count)]
    users = [f"user {n}" for n in range(count)]
    yield (
        "CREATE_TOPICS",
        ApiKey.CREATE_TOPICS,
        5,
        m.CreateTopicsRequest(
            topics=[
                m.CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=1, replication_factor=1
                )
                for name in topics
            ],
            timeout_ms=int(PATIENCE_S * 1000),
        ),
    )
    yield "METADATA", ApiKey.METADATA, 9, m.MetadataRequest(topics=None)
    yield (
        "CREATE_PARTITIONS",
        ApiKey.CREATE_PARTITIONS,
        2,
        m.CreatePartitionsRequest(
            topics=[
                m.CreatePartitionsRequest.CreatePartitionsTopic(
                    name=name, count=2, assignments=None
                )
                for name in topics
            ],
            timeout_ms=int(PATIENCE_S * 1000),
        ),
    )
    request = m.AlterUserScramCredentialsRequest
    yield (
        "ALTER_USER_SCRAM",
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        request(
            upsertions=[
                request.ScramCredentialUpsertion(
                    name=name, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"salted"
                )
                for name in users
            ]
        ),
    )
    describe = m.DescribeUserScramCredentialsRequest
    named = [describe.UserName(name=name) for name in users]
    for row, described_users in (("named", named), ("all", None)):
        key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
        yield f"DESCRIBE_USER_SCRAM {row}", key, 0, describe(users=described_users)
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=users)
    for row in ("at first", "again"):
        yield f"FIND_COORDINATOR {row}", ApiKey.FIND_COORDINATOR, 4, find


def measured(broker: Broker, name: str, frame: bytes) -> str:
    """Send one request; return the longest wait of the other client."""
    host, port, pid = broker
    bystander = Bystander(port, pid, host)
    began, answer = time.monotonic(), "no answer"
    with Client(port, PATIENCE_S, host) as client, bystander.watching():
        with contextlib.suppress(ConnectionError, TimeoutError):
            answer = f"{len(client.exchange(frame)):,} B"
    took_ms = (time.monotonic() - began) * 1000
    return (
        f"{bystander.longest_wait_s * 1000:8.0f} ms waited, {took_ms:8.0f} ms in all, "
        f"{bystander.grown_bytes >> 20:5} MiB, {len(frame):11,} B -> {answer:>14}  {name}"
    )


if __name__ == "__main__":
    main()
