"""Requests with many elements need few round trips to ZooKeeper, however many the elements are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.broker.controller import controller_nodes
from tests.broker.controller.controller_nodes import Node, nodes, run
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import LONG_S
from urteil.broker.base.offload import WINDOW
from urteil.broker.controller import topic_requests
from urteil.broker.security.sasl.scram_alterations import ScramAdmin, Upsertion
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import CreatePartitionsRequest, CreateTopicsRequest
from urteil.broker.zookeeper.session import Session

MANY = 10 * WINDOW
FIXED = 10
"""Round trips that a request needs with any number of elements, and those of the controller."""


class CountingSession(Session):
    """Counts round trips: operations that begin while another is under way need none."""

    round_trips = 0
    under_way = 0

    async def _write(self, call: Callable[[], Any]) -> Any:
        if not self.under_way:
            self.round_trips += 1
        self.under_way += 1
        try:
            return await super()._write(call)
        finally:
            self.under_way -= 1


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_nodes, "Session", CountingSession)
    # A slow host delays ZooKeeper's answers; topics that are not tried then are created later.
    monkeypatch.setattr(topic_requests, "ZOOKEEPER_PRESENT_S", LONG_S)


async def round_trips(node: Node, request: Awaitable[Any]) -> tuple[int, Any]:
    """The round trips until the answer, and the answer."""
    zk: Any = node.zk
    before = zk.round_trips
    answer = await request
    return zk.round_trips - before, answer


def creation(count: int) -> CreateTopicsRequest:
    topics = [
        CreateTopicsRequest.CreatableTopic(name=f"t.{n}", num_partitions=1, replication_factor=1)
        for n in range(count)
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=0, validate_only=False)


def growth(prefix: str, count: int) -> CreatePartitionsRequest:
    topics = [
        CreatePartitionsRequest.CreatePartitionsTopic(
            name=f"{prefix}.{n}", count=2, assignments=None
        )
        for n in range(count)
    ]
    return CreatePartitionsRequest(topics=topics, timeout_ms=0, validate_only=False)


def test_many_topics_are_created_and_extended_in_few_round_trips(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1) as cluster:
            node = await cluster.active()
            trips, created = await round_trips(
                node, node.controller.create_topics(creation(MANY), 7)
            )
            assert {topic.error_code for topic in created.topics} == {ErrorCode.REQUEST_TIMED_OUT}
            assert trips <= MANY / WINDOW * 4 + FIXED  # the controller loads topics in between
            again = await node.controller.create_topics(creation(MANY), 7)
            assert {topic.error_code for topic in again.topics} == {ErrorCode.TOPIC_ALREADY_EXISTS}
            trips, extended = await round_trips(
                node, node.controller.create_partitions(growth("t", MANY))
            )
            assert {result.error_code for result in extended.results} == {
                ErrorCode.REQUEST_TIMED_OUT
            }
            assert trips <= MANY / WINDOW * 6 + FIXED
            trips, extended = await round_trips(
                node, node.controller.create_partitions(growth("absent", MANY))
            )
            unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert {result.error_code for result in extended.results} == unknown
            assert trips <= FIXED

    run(scenario)


def test_topics_of_one_request_collide_with_each_other(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1) as cluster:
            node = await cluster.active()
            names = ["a.b", "a_b", "c", *(f"t{n}" for n in range(MANY)), "t.1", "t_1"]
            topics = [
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=1, replication_factor=1
                )
                for name in names
            ]
            request = CreateTopicsRequest(topics=topics, timeout_ms=60_000, validate_only=False)
            answer = await node.controller.create_topics(request, 7)
            failed = {topic.name: topic.error_code for topic in answer.topics if topic.error_code}
            assert failed == dict.fromkeys(("a_b", "t_1"), ErrorCode.INVALID_TOPIC_EXCEPTION)

    run(scenario)


def test_many_users_are_described_in_few_round_trips(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1) as cluster:
            node = await cluster.active()
            admin = ScramAdmin(node.controller.configs)
            users = [f"user {n}" for n in range(2 * WINDOW)]
            await admin.alter([Upsertion(name, 1, 4096, b"salt", b"salted") for name in users])
            absent = [f"absent {n}" for n in range(MANY)]
            trips, described = await round_trips(node, admin.describe([*absent, *users, ""]))
            assert [row.user for row in described] == [*absent, *users, ""]
            assert [row.user for row in described if row.credentials] == users
            assert {row.error for row in described if not row.credentials} == {
                ErrorCode.RESOURCE_NOT_FOUND
            }
            assert trips <= len(users) / WINDOW + FIXED
            trips, everyone = await round_trips(node, admin.describe(None))
            assert sorted(row.user for row in everyone) == sorted(users)
            assert trips <= len(users) / WINDOW + FIXED

    run(scenario)
