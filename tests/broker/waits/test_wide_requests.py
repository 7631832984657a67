"""A request with an array of many elements, of every API that clients send, holds nobody up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.broker.nodes import Nodes
from tests.broker.waits.bystander import Bystander, Client, framed
from tests.broker.waits.wide_requests import wide_requests
from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
)

FEW, MANY = 2_000, 50_000
LONGEST_WAIT_S = 0.1


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Nodes]:
    with Nodes(
        tmp_path_factory.mktemp("wide"), zookeeper, "/wide", 1, auto_create_topics_enable="false"
    ) as started:
        yield started


@pytest.mark.parametrize("elements", [FEW, pytest.param(MANY, marks=pytest.mark.thorough)])
def test_wide_request_of_any_api_delays_no_other_client(nodes: Nodes, elements: int) -> None:
    waits = {}
    for name, key, version, request in wide_requests(elements):
        bystander = Bystander(nodes.ports[1], nodes.processes[1].pid)
        frame = framed(key, version, request)
        with Client(nodes.ports[1]) as client, bystander.watching():
            with contextlib.suppress(ConnectionError):
                client.exchange(frame)
        waits[name] = bystander.longest_wait_s
    assert len(waits) > 40
    assert {name: wait for name, wait in waits.items() if wait > LONGEST_WAIT_S} == {}


def test_request_in_parts_is_answered_as_a_whole(nodes: Nodes) -> None:
    names = [f"absent-{number}" for number in range(2_000)]
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    with Client(nodes.ports[1]) as client:
        answer = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=topics))
    assert isinstance(answer, MetadataResponse)
    assert [topic.name for topic in answer.topics] == names
    assert len(answer.brokers) == 1


def test_partitions_in_parts_are_answered_under_one_topic(nodes: Nodes) -> None:
    Topic, Partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsPartition
    asked = [Partition(partition_index=number, timestamp=-1) for number in range(2_000)]
    request = ListOffsetsRequest(replica_id=-1, topics=[Topic(name="absent", partitions=asked)])
    with Client(nodes.ports[1]) as client:
        answer = client.ask(ApiKey.LIST_OFFSETS, 7, request)
    assert isinstance(answer, ListOffsetsResponse)
    (topic,) = answer.topics
    assert [partition.partition_index for partition in topic.partitions] == list(range(2_000))
