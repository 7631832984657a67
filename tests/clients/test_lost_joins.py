"""A join whose poll ends early: kafka-python loses it on either cluster, the lab does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import NewPartitions
from kafka.future import Future

from tests.conformance.pair import Pair
from tests.conformance.side import Side
from tests.conformance.test_partitions import partitions
from tests.subscribed import subscribed
from tests.waiting import until
from urteil.harness.clients.kafka_python_fixes import finish_joining

POLL_MS = 50
POLLS_LOST = 20


class DelayedSyncGroup:
    """Delays the responses to SyncGroup of a consumer until `release`, once `hold` is set."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.hold = False
        self.delayed = 0
        self.release = Future()
        self._manager = consumer._coordinator._manager
        self._send = self._manager.send
        self._manager.send = self._send_or_delay

    def _send_or_delay(self, request: Any, *arguments: Any, **options: Any) -> Any:
        response = self._send(request, *arguments, **options)
        if not self.hold or type(request).__name__ != "SyncGroupRequest":
            return response
        self.delayed += 1
        return self._manager.call_soon(self._await_release, response)

    async def _await_release(self, response: Any) -> Any:
        await self.release
        return await response


@pytest.fixture(params=["ours", "theirs"])
def side(pair: Pair, request: pytest.FixtureRequest) -> Side:
    side: Side = getattr(pair, request.param)
    return side


@pytest.fixture
def member(pair: Pair, side: Side) -> Iterator[KafkaConsumer]:
    """The only member of its group, with its topic's only partition."""
    topic = side.create(pair.name("lost-join"), [(1, 2, 3)])
    consumer = subscribed(
        topic,
        side.bootstrap,
        group_id=topic,
        enable_auto_commit=False,
        metadata_max_age_ms=100,
    )  # without an assignment at the end of `poll_until` this join could be lost, too
    poll_until(consumer, lambda: len(consumer.assignment()) == 1)
    yield consumer
    consumer.close()


def poll_until(consumer: KafkaConsumer, holds: Callable[[], object]) -> None:
    def poll_once() -> object:
        consumer.poll(POLL_MS)
        return holds()

    until(poll_once)


def add_partition(side: Side, topic: str) -> None:
    """Add a partition; return when it is in the metadata of every broker.

    A member that fetches metadata from brokers with and without it would join several times."""
    with closing(KafkaAdminClient(bootstrap_servers=side.bootstrap)) as admin:
        admin.create_partitions({topic: NewPartitions(2)}, timeout_ms=30_000)
    side.until_everywhere(lambda to: len(partitions(side, topic, to=to)["partitions"]) == 2)


def rejoin_with_late_sync_group(consumer: KafkaConsumer, side: Side) -> None:
    """A new partition makes the member join again; the response to its SyncGroup is delayed."""
    sync_groups = DelayedSyncGroup(consumer)
    sync_groups.hold = True
    (topic,) = consumer.subscription()
    add_partition(side, topic)
    poll_until(consumer, lambda: sync_groups.delayed)
    consumer.poll(POLL_MS)
    sync_groups.release.success(None)


def test_join_of_an_unpatched_client_is_lost(member: KafkaConsumer, side: Side) -> None:
    rejoin_with_late_sync_group(member, side)
    poll_until(member, lambda: member._coordinator._join_task.is_done)
    for _ in range(POLLS_LOST):
        member.poll(POLL_MS)
    assert member._coordinator._join_task.is_done
    assert not member._coordinator.need_rejoin()
    assert not member._coordinator._heartbeat_enabled


def test_join_of_the_labs_client_completes(member: KafkaConsumer, side: Side) -> None:
    finish_joining(member._coordinator)
    rejoin_with_late_sync_group(member, side)
    poll_until(member, lambda: len(member.assignment()) == 2)
    assert member._coordinator._heartbeat_enabled
