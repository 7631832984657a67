"""The broker's codec reads the probe's requests, and its responses are read."""

from __future__ import annotations

import struct

import pytest

from urteil.broker.wire import messages
from urteil.harness.protocol.metadata_requests import (
    LATEST,
    LIST_OFFSETS,
    METADATA,
    largest_timestamp_request,
    list_offsets_request,
    metadata_request,
    producer_id_request,
    read_largest_timestamp,
    read_list_offsets,
    read_metadata,
    read_producer_id,
)
from urteil.harness.protocol.served_versions import highest_version


def _parts(frame: bytes, *, tags: int = 0) -> tuple[int, bytes]:
    """The version and the body of a request."""
    length, _, version, _, name = struct.unpack_from(">ihhih", frame)
    assert length == len(frame) - 4
    return version, frame[14 + name + tags :]


def test_request_for_the_largest_timestamp() -> None:
    version, body = _parts(largest_timestamp_request(3, [("a", 0), ("b", 1), ("a", 2)]), tags=1)
    decoded, end = messages.ListOffsetsRequest.decode(version, body, 0)
    assert end == len(body)
    assert (decoded.replica_id, decoded.isolation_level) == (-1, 0)
    slots = [
        (topic.name, partition.partition_index, partition.current_leader_epoch, partition.timestamp)
        for topic in decoded.topics
        for partition in topic.partitions
    ]
    assert slots == [("a", 0, -1, -3), ("a", 2, -1, -3), ("b", 1, -1, -3)]
    topic, partition = (
        messages.ListOffsetsResponse.ListOffsetsTopicResponse,
        messages.ListOffsetsResponse.ListOffsetsPartitionResponse,
    )
    results = [
        topic(name="a", partitions=[partition(partition_index=0, timestamp=5, offset=7,
                                              leader_epoch=2)]),
        topic(name="b", partitions=[partition(partition_index=1, error_code=6)]),
    ]  # fmt: skip
    answer = messages.ListOffsetsResponse(topics=results)
    result = read_largest_timestamp(struct.pack(">iB", 3, 0) + b"".join(answer.encode(version)))
    assert result == [("a", 0, 0, 5, 7, 2), ("b", 1, 6, -1, -1, -1)]


def test_request_for_a_producer_id() -> None:
    version, body = _parts(producer_id_request(3))
    decoded, end = messages.InitProducerIdRequest.decode(version, body, 0)
    assert end == len(body)
    assert decoded.transactional_id is None
    answer = messages.InitProducerIdResponse(error_code=7, producer_id=4711)
    assert read_producer_id(struct.pack(">i", 3) + b"".join(answer.encode(version))) == (7, 4711)


@pytest.mark.parametrize("version", range(1, METADATA[1] + 1))
def test_metadata_of_every_version_is_requested_and_read(version: int) -> None:
    sent, body = _parts(metadata_request(3, ["a", "b"], version))
    decoded, end = messages.MetadataRequest.decode(sent, body, 0)
    assert (sent, end) == (version, len(body))
    assert [topic.name for topic in decoded.topics or ()] == ["a", "b"]
    assert version < 4 or not decoded.allow_auto_topic_creation
    kind = messages.MetadataResponse
    partition = kind.MetadataResponsePartition(
        partition_index=1, leader_id=2, leader_epoch=5, replica_nodes=[2, 3], isr_nodes=[2]
    )
    answer = kind(
        brokers=[kind.MetadataResponseBroker(node_id=2, host="h", port=9, rack="r")],
        cluster_id="c",
        controller_id=2,
        topics=[kind.MetadataResponseTopic(name="a", partitions=[partition])],
    )
    frame = struct.pack(">i", 3) + b"".join(answer.encode(version))
    epoch = 5 if version >= 7 else None
    assert read_metadata(frame, version) == ({"h:9": 2}, [("a", 1, 2, epoch, 1)])


@pytest.mark.parametrize("version", range(1, LIST_OFFSETS[1] + 1))
def test_offsets_of_every_version_are_requested_and_read(version: int) -> None:
    request = list_offsets_request(3, [("a", 1)], LATEST, committed=True, version=version)
    sent, body = _parts(request)
    decoded, end = messages.ListOffsetsRequest.decode(sent, body, 0)
    assert (sent, end) == (version, len(body))
    assert decoded.isolation_level == int(version >= 2)
    assert [partition.timestamp for topic in decoded.topics for partition in topic.partitions] == [
        LATEST
    ]
    kind = messages.ListOffsetsResponse
    partition = kind.ListOffsetsPartitionResponse(partition_index=1, offset=7, leader_epoch=2)
    topic = kind.ListOffsetsTopicResponse(name="a", partitions=[partition])
    frame = struct.pack(">i", 3) + b"".join(kind(topics=[topic]).encode(version))
    epoch = 2 if version >= 4 else -1
    assert read_list_offsets(frame, version) == [("a", 1, 0, -1, 7, epoch)]


def test_highest_version_is_what_both_know() -> None:
    assert highest_version(LIST_OFFSETS, {2: 1}) == (2, 1)
    assert highest_version(LIST_OFFSETS, {2: 9}) == LIST_OFFSETS
    assert highest_version(LIST_OFFSETS, {}) == (2, -1)
