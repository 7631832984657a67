"""One broker of Apache Kafka and two of ours as one cluster, under load, while controllers die."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker.traffic import Traffic, read_all
from tests.conformance.records import batch, produce
from tests.conformance.side import Side
from tests.interop.groups import GROUPS, commit, committed
from tests.waiting import until
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DeleteTopicsRequest, InitProducerIdRequest
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target

KINDS = ("kafka", "urteil", "urteil")
TOPIC, PARTITIONS = "orders", 3
SETTINGS = {"log.segment.bytes": "100000"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    target = parse_target("mix:" + ",".join(KINDS))
    spec = ClusterSpec(brokers=len(KINDS), config=SETTINGS)
    with Cluster(spec, target, tmp_path_factory.mktemp("mix")) as started:
        yield started


@pytest.fixture
def side(cluster: Cluster) -> Iterator[Side]:
    mixed = Side("mix", cluster.bootstrap)
    mixed.until(mixed.answers, deadline_s=60)
    yield mixed
    mixed.close()


def elect_controller(cluster: Cluster, node: str) -> None:
    """Make `node` the controller: the other brokers are paused while `/controller` is deleted."""
    controls = cluster.controls()
    others = [broker for broker in controls.brokers if broker != node]
    for broker in others:
        controls.pause(broker)
    cluster.zk.delete("/controller")
    until(lambda: controls.controller() == node, f"{node} is elected", deadline_s=30)
    for broker in others:
        controls.resume(broker)
    cluster.await_healthy(deadline_s=60)


def producer_ids(side: Side) -> list[int]:
    """A new producer id from every broker."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    ids = []
    for broker in range(1, len(KINDS) + 1):
        answers: list[Any] = []

        def has_id(broker: int = broker) -> bool:
            answers[:] = [side.get(request, 4, to=broker)]  # noqa: B023
            error: int = answers[0].error_code  # noqa: B023
            return error == ErrorCode.NONE

        side.until(has_id)
        ids.append(answers[0].producer_id)
    return ids


def read_logs(cluster: Cluster, topic: str, partition: int) -> dict[int, bytes]:
    """The bytes of each replica's log on disk."""
    return {
        broker: b"".join(
            segment.read_bytes()
            for segment in sorted((data / f"{topic}-{partition}").glob("*.log"))
        )
        for broker, data in cluster.data_dirs().items()
    }


def create_and_delete(cluster: Cluster, side: Side, topic: str) -> None:
    """Create a topic on brokers of both kinds, write to it, and delete it with its files."""
    side.create(topic, [(1, 2, 3), (2, 3, 1)])
    for partition, leader in ((0, 1), (1, 2)):
        answer = side.get(produce(topic, batch([b"v"]), partition=partition), 8, to=leader)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
    answer = side.get(request, 4, to=side.controller())
    assert answer.responses[0].error_code == ErrorCode.NONE
    folders = [data / f"{topic}-{n}" for data in cluster.data_dirs().values() for n in (0, 1)]
    until(
        lambda: not any(folder.exists() for folder in folders),
        f"{topic} is deleted everywhere",
        deadline_s=30,
    )
    until(
        lambda: topic not in cluster.controls().topics(),
        f"{topic} is not in the metadata",
        deadline_s=30,
    )


@pytest.mark.timeout(240)
def test_brokers_of_both_kinds_are_one_cluster(cluster: Cluster, side: Side) -> None:
    controls = cluster.controls()
    side.create(TOPIC, [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
    commit(side, TOPIC, 100)
    assert {side.coordinator(group) for group in GROUPS} == {1, 2, 3}
    ids: list[int] = []
    with Traffic(cluster.bootstrap, [TOPIC]) as traffic:
        traffic.await_more(300)
        for kind in ("urteil", "kafka"):
            node = f"b{KINDS.index(kind) + 1}"
            if controls.controller() != node:
                elect_controller(cluster, node)
            ids += producer_ids(side)
            create_and_delete(cluster, side, f"created-under-{kind}")
            traffic.await_more(100)
            controls.kill(node)
            until(
                lambda: controls.controller() not in (None, node),  # noqa: B023
                "another broker is controller",
                deadline_s=30,
            )
            traffic.await_more(200)
            controls.start(node)
            cluster.await_healthy(deadline_s=90)
            traffic.await_more(100)
            side.close()  # the connection to the broker that died
            assert committed(side, TOPIC) == [100 + number for number in range(len(GROUPS))]
    assert traffic.errors == {}
    assert len(set(ids)) == len(ids)
    offsets = read_all(cluster.bootstrap, [TOPIC], PARTITIONS)
    assert {v: at for v, at in traffic.acknowledged.items() if offsets.get(v) != [at]} == {}
    for topic, partitions in ((TOPIC, PARTITIONS), ("__consumer_offsets", len(GROUPS))):
        for partition in range(partitions):
            until(
                lambda: len(set(read_logs(cluster, topic, partition).values())) == 1,  # noqa: B023
                f"replicas of {topic}-{partition} are equal byte by byte",
            )
            assert any(read_logs(cluster, topic, partition).values())
