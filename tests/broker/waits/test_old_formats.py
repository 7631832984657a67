"""Conversion of old formats, in both directions: nobody else waits, memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.nodes import Nodes
from tests.broker.waits.batches import MIB, tiny_records, zeros
from tests.broker.waits.bystander import Bystander, Client
from tests.broker.waits.controller import wait_for_controller
from tests.broker.waits.old_messages import old_messages, old_zeros
from tests.broker.waits.test_records import LONGEST_WAIT_S, create_topic, produce
from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.compression import Compression
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, FetchResponse

GROWTH_BYTES = 400 * MIB
"""What is converted is unpacked as a whole, up to 100 MiB of it, and written anew."""
ZEROS_MIB = 600
RECORDS = 200_000
PRODUCE_OF, FETCH_OF = {0: 0, 1: 2}, {0: 1, 1: 3}
"""The versions that send and read messages of magic 0 and of magic 1."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("old")
    with Nodes(folder, zookeeper, "/old", 1, message_max_bytes=str(64 * MIB)) as started:
        wait_for_controller(started.ports[1])
        yield started


@pytest.fixture
def bystander(nodes: Nodes) -> Bystander:
    return Bystander(nodes.ports[1], nodes.processes[1].pid)


def fetch(client: Client, topic: str, version: int) -> FetchResponse.PartitionData:
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=64 * MIB, log_start_offset=-1
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=64 * MIB,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
    answer = client.ask(ApiKey.FETCH, version, request)
    assert isinstance(answer, FetchResponse)
    return answer.responses[0].partitions[0]


def assert_undisturbed(bystander: Bystander) -> None:
    assert bystander.answers > 0
    assert bystander.longest_wait_s < LONGEST_WAIT_S
    assert bystander.grown_bytes < GROWTH_BYTES


@pytest.mark.parametrize("magic", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_old_message_of_zeros_beyond_the_limit_is_rejected(
    nodes: Nodes, bystander: Bystander, magic: int
) -> None:
    topic, bomb = f"old-zeros-{magic}", old_zeros(magic, Compression.GZIP, ZEROS_MIB)
    with Client(nodes.ports[1]) as client:
        create_topic(client, topic)
        with bystander.watching():
            answer = produce(client, topic, bomb, PRODUCE_OF[magic])
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert_undisturbed(bystander)


@pytest.mark.parametrize("magic", [1, pytest.param(0, marks=pytest.mark.thorough)])
def test_many_old_messages_are_taken_while_others_are_served(
    nodes: Nodes, bystander: Bystander, magic: int
) -> None:
    topic, messages = f"old-many-{magic}", old_messages(magic, Compression.GZIP, RECORDS)
    with Client(nodes.ports[1]) as client:
        create_topic(client, topic)
        with bystander.watching():
            answer = produce(client, topic, messages, PRODUCE_OF[magic])
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert_undisturbed(bystander)


@pytest.mark.parametrize("magic", [1, pytest.param(0, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_read_in_an_old_format_does_not_delay_other_clients(
    nodes: Nodes, bystander: Bystander, magic: int, codec: Compression
) -> None:
    topic, batch = f"new-many-{magic}-{codec.name}", tiny_records(codec, RECORDS)
    with Client(nodes.ports[1]) as client:
        create_topic(client, topic)
        assert produce(client, topic, batch).error_code == 0
        with bystander.watching():
            response = fetch(client, topic, FETCH_OF[magic])
    assert response.error_code == 0
    assert response.records
    assert_undisturbed(bystander)


def test_batch_of_zeros_is_not_converted_beyond_the_limit(
    nodes: Nodes, bystander: Bystander
) -> None:
    with Client(nodes.ports[1]) as client:
        create_topic(client, "new-zeros")
        assert produce(client, "new-zeros", zeros(Compression.GZIP, ZEROS_MIB)).error_code == 0
        with bystander.watching():
            response = fetch(client, "new-zeros", 3)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert_undisturbed(bystander)
