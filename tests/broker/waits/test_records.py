"""Records that are small on the wire and large in memory: nobody else waits, memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.nodes import Nodes
from tests.broker.waits.batches import MIB, NOW_MS, tiny_records, zeros
from tests.broker.waits.bystander import Bystander, Client, framed
from tests.broker.waits.controller import wait_for_controller
from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.compression import Compression
from urteil.broker.wire.framing import decode_response
from urteil.broker.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)

LONGEST_WAIT_S = 0.1
GROWTH_BYTES = 64 * MIB
CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
ZEROS_MIB = dict.fromkeys(CODECS, 300) | {Compression.GZIP: 900}
RECORDS = 500_000
MAX_MESSAGE_BYTES = str(100 * MIB)
LARGEST_MIB = 90


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("waits")
    with Nodes(folder, zookeeper, "/records", 1, message_max_bytes=MAX_MESSAGE_BYTES) as started:
        wait_for_controller(started.ports[1])
        yield started


@pytest.fixture
def bystander(nodes: Nodes) -> Bystander:
    return Bystander(nodes.ports[1], nodes.processes[1].pid)


def create_topic(client: Client, name: str, **configs: str) -> None:
    Topic = CreateTopicsRequest.CreatableTopic
    answer = client.ask(
        ApiKey.CREATE_TOPICS,
        5,
        CreateTopicsRequest(
            topics=[
                Topic(
                    name=name,
                    num_partitions=1,
                    replication_factor=1,
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(
                            name=key.replace("_", "."), value=value
                        )
                        for key, value in configs.items()
                    ],
                )
            ],
            timeout_ms=60_000,
        ),
    )
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == 0


def produce_frame(topic: str, records: bytes, version: int = 9) -> bytes:
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(records))
    request = ProduceRequest(
        acks=1,
        timeout_ms=60_000,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
    )
    return framed(ApiKey.PRODUCE, version, request)


def produce(
    client: Client, topic: str, records: bytes, version: int = 9
) -> ProduceResponse.PartitionProduceResponse:
    frame = produce_frame(topic, records, version)
    answer = decode_response(ApiKey.PRODUCE, version, client.exchange(frame))[1]
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def offset_at(client: Client, topic: str, time_ms: int) -> int:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=time_ms)
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])],
    )
    answer = client.ask(ApiKey.LIST_OFFSETS, 7, request)
    assert isinstance(answer, ListOffsetsResponse)
    assert answer.topics[0].partitions[0].error_code == 0
    return answer.topics[0].partitions[0].offset


def assert_undisturbed(bystander: Bystander) -> None:
    assert bystander.answers > 0
    assert bystander.longest_wait_s < LONGEST_WAIT_S
    assert bystander.grown_bytes < GROWTH_BYTES


@pytest.mark.parametrize("codec", CODECS)
def test_batch_of_zeros_does_not_delay_other_clients(
    nodes: Nodes, bystander: Bystander, codec: Compression
) -> None:
    topic, bomb = f"zeros-{codec.name}", zeros(codec, ZEROS_MIB[codec])
    with Client(nodes.ports[1]) as client:
        create_topic(client, topic)
        with bystander.watching():
            answer = produce(client, topic, bomb)
            offset = offset_at(client, topic, NOW_MS)
    assert (answer.error_code, answer.base_offset, offset) == (0, 0, 0)
    assert_undisturbed(bystander)


@pytest.mark.parametrize(
    "codec",
    [CODECS[0], *(pytest.param(codec, marks=pytest.mark.thorough) for codec in CODECS[1:])],
)
def test_batch_of_many_records_does_not_delay_other_clients(
    nodes: Nodes, bystander: Bystander, codec: Compression
) -> None:
    topic, bomb = f"tiny-{codec.name}", tiny_records(codec, RECORDS)
    with Client(nodes.ports[1]) as client:
        create_topic(client, topic)
        with bystander.watching():
            answer = produce(client, topic, bomb)
            offset = offset_at(client, topic, NOW_MS)
    assert (answer.error_code, answer.base_offset, offset) == (0, 0, 0)
    assert_undisturbed(bystander)


@pytest.mark.thorough
def test_large_uncompressed_batch_is_written_while_others_are_served(
    nodes: Nodes, bystander: Bystander
) -> None:
    frame = produce_frame("large", zeros(Compression.NONE, LARGEST_MIB))
    with Client(nodes.ports[1]) as client:
        create_topic(client, "large")
        with bystander.watching():
            response = decode_response(ApiKey.PRODUCE, 9, client.exchange(frame))[1]
    assert isinstance(response, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == 0
    assert bystander.longest_wait_s < LONGEST_WAIT_S
    assert bystander.grown_bytes < GROWTH_BYTES + LARGEST_MIB * MIB  # as it came
