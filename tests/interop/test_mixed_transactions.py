"""Transactions in a cluster of both kinds: coordinators, leaders and offsets of either."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition

from tests.conformance.side import Side
from tests.conformance.transactional import WAIT_S, producer, read, reader, send
from tests.conformance.transactions import coordinator
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target

KINDS = ("kafka", "urteil", "urteil")
TOPIC = "orders"
SETTINGS = {"transaction.state.log.num.partitions": "3"}
NAMES = tuple(f"id-{number}" for number in range(12))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    target = parse_target("mix:" + ",".join(KINDS))
    spec = ClusterSpec(brokers=len(KINDS), config=SETTINGS)
    with Cluster(spec, target, tmp_path_factory.mktemp("mix")) as started:
        yield started


@pytest.mark.timeout(240)
@pytest.mark.thorough
def test_transactions_cross_both_kinds(cluster: Cluster) -> None:
    side = Side("mix", cluster.bootstrap)
    side.until(side.answers, deadline_s=60)
    side.create(TOPIC, [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
    led_by = {coordinator(side, name): name for name in NAMES}
    assert set(led_by) == {1, 2, 3}  # so that each kind coordinates some
    consumer = reader(cluster, **{"group.id": "of both"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    producers = {number: producer(cluster, name) for number, name in led_by.items()}
    for turn, (number, client) in enumerate(sorted(producers.items())):
        for commit in (True, False):
            client.begin_transaction()
            send(
                client, TOPIC, [f"{'kept' if commit else 'dropped'} {number} {n}" for n in range(3)]
            )
            place = TopicPartition(TOPIC, 0, 10 * turn + commit)
            client.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), WAIT_S)
            (client.commit_transaction if commit else client.abort_transaction)(WAIT_S)
    kept = read(cluster, TOPIC, "read_committed")
    assert kept == sorted(f"kept {number} {n}" for number in (1, 2, 3) for n in range(3))
    (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], WAIT_S)
    assert committed.offset == 21
    for client in producers.values():
        client.begin_transaction()
        send(client, TOPIC, ["over a crash"] * 3)
    for node in ("b1", "b2"):  # one of each kind
        cluster.controls().kill(node)
        cluster.controls().start(node)
        cluster.await_healthy(deadline_s=90)
    for client in producers.values():
        client.commit_transaction(2 * WAIT_S)
    assert read(cluster, TOPIC, "read_committed") == sorted(kept + ["over a crash"] * 9)
    consumer.close()
    side.close()
