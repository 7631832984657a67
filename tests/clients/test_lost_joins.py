"""kafka-python loses a join whose poll ends early, on either side; in the lab it does not."""

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


class Synchronised:
    """Keeps what is answered to SyncGroup from a consumer, once `hold` is set, until `release`."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.hold = False
        self.held = 0
        self.release = Future()
        self._manager = consumer._coordinator._manager
        self._send = self._manager.send
        self._manager.send = self._send_or_keep

    def _send_or_keep(self, request: Any, *more: Any, **named: Any) -> Any:
        answered = self._send(request, *more, **named)
        if not self.hold or type(request).__name__ != "SyncGroupRequest":
            return answered
        self.held += 1
        return self._manager.call_soon(self._late, answered)

    async def _late(self, answered: Any) -> Any:
        await self.release
        return await answered


@pytest.fixture(params=["ours", "theirs"])
def side(pair: Pair, request: pytest.FixtureRequest) -> Side:
    found: Side = getattr(pair, request.param)
    return found


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
    )  # without its partitions this join could be lost, too
    poll_until(consumer, lambda: len(consumer.assignment()) == 1)
    yield consumer
    consumer.close()


def poll_until(consumer: KafkaConsumer, holds: Callable[[], object]) -> None:
    def polled() -> object:
        consumer.poll(POLL_MS)
        return holds()

    until(polled)


def grow(side: Side, topic: str) -> None:
    """Returned when every broker knows: who hears of it by turns joins again by turns."""
    with closing(KafkaAdminClient(bootstrap_servers=side.bootstrap)) as admin:
        admin.create_partitions({topic: NewPartitions(2)}, timeout_ms=30_000)
    side.until_everywhere(lambda to: len(partitions(side, topic, to=to)["partitions"]) == 2)


def polls_end_before_the_join(consumer: KafkaConsumer, side: Side) -> None:
    """A partition more makes the member join again; the answer to its SyncGroup is late."""
    answers = Synchronised(consumer)
    answers.hold = True
    (topic,) = consumer.subscription()
    grow(side, topic)
    poll_until(consumer, lambda: answers.held)
    consumer.poll(POLL_MS)
    answers.release.success(None)


def test_join_of_an_unpatched_client_is_lost(member: KafkaConsumer, side: Side) -> None:
    polls_end_before_the_join(member, side)
    poll_until(member, lambda: member._coordinator._join_task.is_done)
    for _ in range(POLLS_LOST):
        member.poll(POLL_MS)
    assert member._coordinator._join_task.is_done
    assert not member._coordinator.need_rejoin()
    assert not member._coordinator._heartbeat_enabled


def test_join_of_the_labs_client_completes(member: KafkaConsumer, side: Side) -> None:
    finish_joining(member._coordinator)
    polls_end_before_the_join(member, side)
    poll_until(member, lambda: len(member.assignment()) == 2)
    assert member._coordinator._heartbeat_enabled
