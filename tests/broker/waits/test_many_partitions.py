"""A topic of many partitions is made, described and deleted while others are served."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.broker.nodes import Nodes
from tests.broker.waits.bystander import Bystander, Client, framed
from tests.broker.waits.controller import wait_for_controller
from tests.broker.waits.test_records import LONGEST_WAIT_S
from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    MetadataRequest,
)

FEW, MANY = 300, 3_000
TIMEOUT_MS = 120_000


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Nodes]:
    with Nodes(tmp_path_factory.mktemp("many"), zookeeper, "/many", 1) as started:
        wait_for_controller(started.ports[1])
        yield started


def create(client: Client, name: str, partitions: int) -> int:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    answer = client.ask(ApiKey.CREATE_TOPICS, 5, request)
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code


def delete(client: Client, name: str) -> int:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
    answer = client.ask(ApiKey.DELETE_TOPICS, 4, request)
    assert isinstance(answer, DeleteTopicsResponse)
    return answer.responses[0].error_code


@pytest.mark.parametrize("partitions", [FEW, pytest.param(MANY, marks=pytest.mark.thorough)])
def test_topic_of_many_partitions_does_not_delay_other_clients(
    nodes: Nodes, partitions: int
) -> None:
    waits = {}
    name = f"t{partitions}"
    acts: dict[str, Callable[[Client], object]] = {
        "create": lambda client: create(client, name, partitions),
        "describe": lambda client: client.exchange(
            framed(ApiKey.METADATA, 9, MetadataRequest(topics=None))
        ),
        "delete": lambda client: delete(client, name),
    }
    answers: dict[str, object] = {}
    with Client(nodes.ports[1]) as client:
        for act, run in acts.items():
            bystander = Bystander(nodes.ports[1], nodes.processes[1].pid)
            with bystander.watching():
                answers[act] = run(client)
            waits[act] = bystander.longest_wait_s
    assert (answers["create"], answers["delete"]) == (0, 0)
    assert {act: wait for act, wait in waits.items() if wait > LONGEST_WAIT_S} == {}
