"""Consumer groups of our broker with librdkafka as the client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.conftest import QUICK
from tests.conformance.side import Side
from tests.waiting import LONG_S, until
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

TOPIC, PARTITIONS, RECORDS = "orders", 4, 200


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    spec = ClusterSpec(brokers=3, config=QUICK)
    with Cluster(spec, UrteilTarget(), tmp_path_factory.mktemp("clients")) as cluster:
        side = Side("ours", cluster.bootstrap)
        side.create(TOPIC, [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2)])
        side.close()
        produce(cluster, RECORDS)
        yield cluster


def produce(cluster: Cluster, count: int) -> None:
    producer = Producer({"bootstrap.servers": ",".join(cluster.bootstrap), "acks": "all"})
    errors: list[Any] = []
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(LONG_S) == 0
    assert errors == [None] * count


class Member:
    """A consumer in a group, with the partitions that it had to revoke."""

    def __init__(self, cluster: Cluster, group: str, strategy: str, **more: str) -> None:
        self.revoked: list[int] = []
        self.seen = 0
        self.consumer = Consumer(
            {
                "bootstrap.servers": ",".join(cluster.bootstrap),
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": 20_000,
                "heartbeat.interval.ms": 200,
                **more,
            }
        )
        self.consumer.subscribe([TOPIC], on_revoke=self._on_revoke)

    def _on_revoke(self, _consumer: Consumer, places: Sequence[TopicPartition]) -> None:
        self.revoked += [place.partition for place in places]

    @property
    def holds(self) -> list[int]:
        return sorted(place.partition for place in self.consumer.assignment())

    def poll(self) -> None:
        self.seen += sum(1 for message in self.consumer.consume(100, 0.05) if not message.error())


def poll_until(
    members: Sequence[Member], condition: Callable[[], bool], deadline_s: float = LONG_S
) -> None:
    def poll() -> bool:
        for member in members:
            member.poll()
        return condition()

    until(poll, lambda: [(member.holds, member.seen) for member in members], deadline_s=deadline_s)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_group_rebalances_as_members_join_and_leave(cluster: Cluster, strategy: str) -> None:
    first = Member(cluster, f"going-{strategy}", strategy)
    poll_until([first], lambda: len(first.holds) == PARTITIONS and first.seen == RECORDS)
    second = Member(cluster, f"going-{strategy}", strategy)
    both = [first, second]
    poll_until(both, lambda: sorted([*first.holds, *second.holds]) == [0, 1, 2, 3])
    poll_until(both, lambda: len(second.holds) == 2)
    # cooperative members keep what they need not give up
    assert len(first.revoked) == (2 if strategy == "cooperative-sticky" else PARTITIONS)
    second.consumer.close()
    poll_until([first], lambda: len(first.holds) == PARTITIONS)
    first.consumer.close()


def test_static_member_restarts_without_a_rebalance(cluster: Cluster) -> None:
    first = Member(cluster, "static", "range", **{"group.instance.id": "one"})
    second = Member(cluster, "static", "range", **{"group.instance.id": "two"})
    poll_until([first, second], lambda: len(first.holds) == len(second.holds) == 2)
    held, revocations = second.holds, len(first.revoked)
    second.consumer.close()
    second = Member(cluster, "static", "range", **{"group.instance.id": "two"})
    poll_until([first, second], lambda: second.holds == held)
    assert len(first.revoked) == revocations
    first.consumer.close()
    second.consumer.close()


def test_committed_offsets_survive_the_coordinators_crash(cluster: Cluster) -> None:
    """The last test of this cluster: a broker is killed, and the group continues at another."""
    member = Member(cluster, "bereaved", "range")
    poll_until([member], lambda: member.seen == RECORDS)
    member.consumer.commit(asynchronous=False)
    places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    before = [place.offset for place in member.consumer.committed(places, 10)]
    side = Side("ours", cluster.bootstrap)
    cluster.controls().kill(f"b{side.coordinator('bereaved')}")
    side.close()
    stranger = Member(cluster, "bereaved", "range").consumer
    after = [place.offset for place in stranger.committed(places, 30)]
    assert after == before
    assert sum(offset for offset in before if offset > 0) == RECORDS
    stranger.close()
    produce(cluster, 20)
    poll_until([member], lambda: member.seen >= RECORDS + 20)
    member.consumer.close()
